import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('metrics', '0001_initial'), ('metrics', '0002_language_models')]

    initial = True

    dependencies = [
        ('accounts', '0001_squashed_0004_key_owners'),
        ('annotation', '0001_squashed_0004_judges'),
        ('judges', '0001_squashed_0003_judges'),
        ('rubrics', '0001_squashed_0002_rubrics'),
        ('trajectories', '0001_squashed_0004_facts'),
    ]

    operations = [
        migrations.CreateModel(
            name='Induction',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('succeeded', 'Succeeded'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='queued', max_length=10)),
                ('attempt', models.PositiveIntegerField(default=0)),
                ('lost', models.PositiveSmallIntegerField(default=0)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('started_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('heartbeat_at', models.DateTimeField(null=True)),
                ('cancel_requested', models.BooleanField(default=False)),
                ('progress', models.JSONField(default=dict)),
                ('error', models.TextField(default='')),
                ('engine', models.CharField(choices=[('embedded', 'Embedded: sentence embeddings, no language model'), ('llm', 'Language model')], default='embedded', max_length=10)),
                ('seed', models.PositiveIntegerField(default=0)),
                ('result', models.JSONField(default=dict)),
                ('before', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='metrics.induction')),
                ('campaign', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='inductions', to='annotation.campaign')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='inductions', to='accounts.project')),
                ('language_model', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='judges.languagemodel')),
            ],
            options={
                'ordering': ['-pk'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('state__in', ['queued', 'running'])), fields=('project',), name='induction_one_at_a_time')],
            },
        ),
        migrations.CreateModel(
            name='Metric',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveSmallIntegerField()),
                ('name', models.CharField(max_length=200)),
                ('definition', models.TextField(blank=True)),
                ('state', models.CharField(choices=[('proposed', 'Proposed'), ('accepted', 'Accepted'), ('rejected', 'Rejected'), ('merged', 'Merged')], default='proposed', max_length=8)),
                ('before', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='after', to='metrics.metric')),
                ('criterion', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='induced', to='rubrics.criterion')),
                ('induction', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='metrics', to='metrics.induction')),
                ('merged_into', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='merged', to='metrics.metric')),
            ],
            options={
                'ordering': ['induction', 'position'],
                'constraints': [models.UniqueConstraint(fields=('induction', 'position'), name='metric_position_once'), models.UniqueConstraint(fields=('induction', 'name'), name='metric_name_once')],
            },
        ),
        migrations.CreateModel(
            name='Aspect',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('feedback', models.TextField()),
                ('behaviour', models.TextField(blank=True)),
                ('sign', models.SmallIntegerField()),
                ('step', models.PositiveIntegerField(null=True)),
                ('chance', models.FloatField(null=True)),
                ('covered', models.BooleanField()),
                ('example', models.PositiveSmallIntegerField(null=True)),
                ('x', models.FloatField()),
                ('y', models.FloatField()),
                ('comment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='aspects', to='annotation.comment')),
                ('trajectory', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='aspects', to='trajectories.trajectory')),
                ('induction', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='aspects', to='metrics.induction')),
                ('metric', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='aspects', to='metrics.metric')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('induction', 'number'), name='aspect_number_once'), models.CheckConstraint(condition=models.Q(('sign__in', [-1, 1])), name='aspect_sign')],
            },
        ),
        migrations.CreateModel(
            name='Verdict',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('sign', models.SmallIntegerField()),
                ('value', models.FloatField()),
                ('step', models.PositiveIntegerField(null=True)),
                ('because', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='metrics.aspect')),
                ('metric', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='verdicts', to='metrics.metric')),
                ('trajectory', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='verdicts', to='trajectories.trajectory')),
                ('reason', models.TextField(blank=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('metric', 'trajectory'), name='verdict_once'), models.CheckConstraint(condition=models.Q(('sign__in', [-1, 0, 1])), name='verdict_sign')],
            },
        ),
    ]
