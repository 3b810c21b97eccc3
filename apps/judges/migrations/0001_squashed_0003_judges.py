import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('judges', '0001_initial'), ('judges', '0002_costs'), ('judges', '0003_judges')]

    initial = True

    dependencies = [
        ('accounts', '0001_squashed_0004_key_owners'),
        ('annotation', '0001_squashed_0004_judges'),
        ('rubrics', '0001_squashed_0002_rubrics'),
        ('trajectories', '0001_squashed_0004_facts'),
    ]

    operations = [
        migrations.CreateModel(
            name='LanguageModel',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100)),
                ('base_url', models.CharField(blank=True, max_length=500)),
                ('model', models.CharField(blank=True, max_length=200)),
                ('key', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='language_models', to='accounts.project')),
                ('answer_tokens', models.PositiveIntegerField(default=4096)),
                ('calls_per_minute', models.PositiveIntegerField(blank=True, null=True)),
                ('completion_price', models.DecimalField(blank=True, decimal_places=4, max_digits=12, null=True)),
                ('folder', models.CharField(blank=True, max_length=500)),
                ('monthly_limit', models.DecimalField(blank=True, decimal_places=2, max_digits=12, null=True)),
                ('next_call_at', models.DateTimeField(null=True)),
                ('prompt_price', models.DecimalField(blank=True, decimal_places=4, max_digits=12, null=True)),
            ],
            options={
                'ordering': ['name'],
                'constraints': [models.UniqueConstraint(fields=('project', 'name'), name='language_model_name_once'), models.CheckConstraint(condition=models.Q(models.Q(('base_url', ''), models.Q(('folder', ''), _negated=True)), models.Q(models.Q(('base_url', ''), _negated=True), ('folder', '')), _connector='OR'), name='language_model_one_place')],
            },
        ),
        migrations.CreateModel(
            name='Answer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=64)),
                ('answer', models.JSONField()),
                ('comment', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='annotation.comment')),
                ('trajectory', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='trajectories.trajectory')),
                ('language_model', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='answers', to='judges.languagemodel')),
                ('other', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='trajectories.trajectory')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('language_model', 'key'), name='answer_once')],
            },
        ),
        migrations.CreateModel(
            name='Spending',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100)),
                ('day', models.DateField()),
                ('purpose', models.CharField(choices=[('trial', 'Trying it'), ('metrics', 'Inducing metrics'), ('judging', 'Judging'), ('endpoint', 'Endpoints')], max_length=10)),
                ('calls', models.PositiveIntegerField(default=0)),
                ('failed', models.PositiveIntegerField(default=0)),
                ('prompt_tokens', models.PositiveBigIntegerField(default=0)),
                ('completion_tokens', models.PositiveBigIntegerField(default=0)),
                ('cost', models.DecimalField(decimal_places=8, default=0, max_digits=16)),
                ('language_model', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='spendings', to='judges.languagemodel')),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='spendings', to='accounts.project')),
            ],
            options={
                'ordering': ['-day', 'name', 'purpose'],
                'constraints': [models.UniqueConstraint(fields=('language_model', 'day', 'purpose'), name='spending_once')],
            },
        ),
        migrations.CreateModel(
            name='Judge',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100)),
                ('mode', models.CharField(choices=[('score', 'Score each run by the rubric'), ('compare', 'Say which of two runs is better')], max_length=10)),
                ('guidelines', models.TextField(blank=True)),
                ('samples', models.PositiveSmallIntegerField(default=1)),
                ('prompt', models.PositiveSmallIntegerField(default=1)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('language_model', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='judges', to='judges.languagemodel')),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='judges', to='accounts.project')),
                ('rubric', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='judges', to='rubrics.rubric')),
            ],
            options={
                'ordering': ['name'],
                'constraints': [models.UniqueConstraint(fields=('project', 'name'), name='judge_name_once'), models.CheckConstraint(condition=models.Q(models.Q(('mode', 'score'), _negated=True), ('rubric__isnull', False), _connector='OR'), name='judge_scores_by_rubric')],
            },
        ),
        migrations.CreateModel(
            name='Judging',
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
                ('prompt', models.PositiveSmallIntegerField()),
                ('most', models.PositiveIntegerField(blank=True, null=True)),
                ('hands_in', models.BooleanField(default=False)),
                ('handed_in_at', models.DateTimeField(null=True)),
                ('result', models.JSONField(default=dict)),
                ('campaign', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='judgings', to='annotation.campaign')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('judge', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='judgings', to='judges.judge')),
            ],
            options={
                'ordering': ['-pk'],
            },
        ),
        migrations.CreateModel(
            name='Judged',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('done', 'Done'), ('failed', 'Failed')], default='waiting', max_length=7)),
                ('answer', models.JSONField(null=True)),
                ('problem', models.TextField(blank=True)),
                ('item', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='judged', to='annotation.item')),
                ('other', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='judged_as_other', to='trajectories.trajectory')),
                ('trajectory', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='judged', to='trajectories.trajectory')),
                ('judging', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='judged', to='judges.judging')),
            ],
            options={
                'indexes': [models.Index(fields=['judging', 'state'], name='judged_state')],
                'constraints': [models.UniqueConstraint(fields=('judging', 'item', 'trajectory'), name='judged_once', nulls_distinct=False), models.CheckConstraint(condition=models.Q(models.Q(('answer__isnull', False), ('state', 'done')), models.Q(('state', 'done'), _negated=True), _connector='OR'), name='judged_has_answer')],
            },
        ),
    ]
