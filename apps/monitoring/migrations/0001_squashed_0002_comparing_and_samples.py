import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('monitoring', '0001_initial'), ('monitoring', '0002_comparing_and_samples')]

    initial = True

    dependencies = [
        ('accounts', '0001_squashed_0004_key_owners'),
        ('annotation', '0001_squashed_0004_judges'),
        ('datasets', '0001_squashed_0004_leaks'),
        ('rewards', '0001_squashed_0005_endpoint_names_per_project'),
        ('training', '0001_squashed_0003_parent_of_run'),
    ]

    operations = [
        migrations.CreateModel(
            name='Alert',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveIntegerField()),
                ('run', models.CharField(blank=True, max_length=200)),
                ('policy_version', models.CharField(blank=True, max_length=200)),
                ('rule', models.CharField(max_length=60)),
                ('measure', models.CharField(max_length=40)),
                ('value', models.FloatField()),
                ('baseline', models.FloatField()),
                ('limit', models.FloatField()),
                ('margin', models.FloatField()),
                ('count', models.PositiveIntegerField()),
                ('detail', models.TextField()),
                ('raised_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('seen_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('closed_at', models.DateTimeField(null=True)),
                ('note', models.TextField(blank=True)),
                ('closed_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('endpoint', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='alerts', to='rewards.endpoint')),
                ('samples', models.ManyToManyField(related_name='alerts', to='rewards.scoresample')),
            ],
            options={
                'indexes': [models.Index(fields=['endpoint', '-raised_at'], name='alert_newest')],
                'constraints': [models.UniqueConstraint(fields=('endpoint', 'version', 'run', 'rule'), name='alert_once')],
            },
        ),
        migrations.CreateModel(
            name='FollowUp',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('items', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None)),
                ('asked_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('alert', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='follow_ups', to='monitoring.alert')),
                ('asked_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='follow_ups', to='annotation.campaign')),
                ('endpoint', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='follow_ups', to='rewards.endpoint')),
                ('samples', models.JSONField(default=dict)),
            ],
        ),
        migrations.CreateModel(
            name='Letter',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('next_at', models.DateTimeField(db_index=True, default=django.utils.timezone.now, null=True)),
                ('sent_at', models.DateTimeField(null=True)),
                ('error', models.TextField(blank=True)),
                ('alert', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='letters', to='monitoring.alert')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='letters', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('alert', 'user'), name='letter_once')],
            },
        ),
        migrations.CreateModel(
            name='Monitor',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('rules', models.JSONField(default=list)),
                ('last_sample', models.BigIntegerField(default=0)),
                ('looked_at', models.DateTimeField(null=True)),
                ('online_every', models.PositiveIntegerField(default=0)),
                ('learnt_to', models.BigIntegerField(default=0)),
                ('endpoint', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='monitor', to='rewards.endpoint')),
                ('told', models.ManyToManyField(related_name='monitors', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Reading',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveIntegerField()),
                ('run', models.CharField(blank=True, max_length=200)),
                ('policy_version', models.CharField(blank=True, max_length=200)),
                ('values', models.JSONField()),
                ('count', models.PositiveIntegerField()),
                ('reward', models.FloatField()),
                ('root_kl', models.FloatField(null=True)),
                ('gold', models.FloatField(null=True)),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('monitor', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='readings', to='monitoring.monitor')),
            ],
            options={
                'indexes': [models.Index(fields=['monitor', '-at'], name='reading_newest')],
            },
        ),
        migrations.CreateModel(
            name='Turn',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('stage', models.CharField(choices=[('asking', 'People judge'), ('freezing', 'Feedback is frozen'), ('training', 'A model is trained'), ('comparing', 'It is compared'), ('trying', 'It is on trial'), ('done', 'It answers'), ('stopped', 'Stopped')], max_length=10)),
                ('asks', models.PositiveIntegerField(default=0)),
                ('heads_only', models.BooleanField(default=True)),
                ('tries', models.BooleanField(default=True)),
                ('automatic', models.BooleanField(default=False)),
                ('is_ready', models.BooleanField(default=False)),
                ('entered', models.JSONField(default=dict)),
                ('reason', models.TextField(blank=True)),
                ('started_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('ended_at', models.DateTimeField(null=True)),
                ('against', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='training.rewardmodel')),
                ('endpoint', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='turns', to='rewards.endpoint')),
                ('follow_up', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='turns', to='monitoring.followup')),
                ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='turns', to='training.run')),
                ('snapshot', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='turns', to='datasets.snapshot')),
                ('started_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('trial', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='turns', to='rewards.trial')),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('endpoint',), name='one_open_turn')],
            },
        ),
        migrations.CreateModel(
            name='Comparing',
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
                ('result', models.JSONField(default=list)),
                ('turn', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='comparing', to='monitoring.turn')),
                ('snapshots', models.ManyToManyField(related_name='+', to='datasets.snapshot')),
            ],
        ),
        migrations.AlterField(
            model_name='comparing',
            name='turn',
            field=models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='comparing', to='monitoring.turn'),
        ),
    ]
