import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('rewards', '0001_initial'), ('rewards', '0002_usage'), ('rewards', '0003_trials_and_samples'), ('rewards', '0004_judges'), ('rewards', '0005_endpoint_names_per_project')]

    initial = True

    dependencies = [
        ('accounts', '0001_squashed_0004_key_owners'),
        ('judges', '0001_squashed_0003_judges'),
        ('training', '0001_squashed_0003_parent_of_run'),
    ]

    operations = [
        migrations.CreateModel(
            name='ScoreReceipt',
            fields=[
                ('id', models.UUIDField(primary_key=True, serialize=False)),
                ('at', models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name='Endpoint',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.SlugField(max_length=60)),
                ('switched_off', models.BooleanField(default=False)),
                ('switched_off_reason', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='endpoints', to='accounts.project')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('project', 'name'), name='endpoint_name_per_project')],
            },
        ),
        migrations.CreateModel(
            name='ScoreRollup',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('hour', models.DateTimeField()),
                ('version', models.PositiveIntegerField()),
                ('caller', models.CharField(max_length=40)),
                ('run', models.CharField(blank=True, max_length=200)),
                ('policy_version', models.CharField(blank=True, max_length=200)),
                ('requests', models.BigIntegerField(default=0)),
                ('items', models.BigIntegerField(default=0)),
                ('tokens', models.BigIntegerField(default=0)),
                ('cached_tokens', models.BigIntegerField(default=0)),
                ('repeated', models.BigIntegerField(default=0)),
                ('refused', models.BigIntegerField(default=0)),
                ('overloaded', models.BigIntegerField(default=0)),
                ('failed', models.BigIntegerField(default=0)),
                ('uncertain', models.BigIntegerField(default=0)),
                ('truncated', models.BigIntegerField(default=0)),
                ('reward_sum', models.FloatField(default=0.0)),
                ('reward_squares', models.FloatField(default=0.0)),
                ('latency', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None)),
                ('rewards', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None)),
                ('endpoint', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='rollups', to='rewards.endpoint')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('endpoint', 'hour', 'version', 'caller', 'run', 'policy_version'), name='score_rollup_once')],
            },
        ),
        migrations.CreateModel(
            name='ScoreSample',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveIntegerField()),
                ('caller', models.CharField(max_length=40)),
                ('run', models.CharField(blank=True, max_length=200)),
                ('policy_version', models.CharField(blank=True, max_length=200)),
                ('item', models.JSONField()),
                ('result', models.JSONField()),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('endpoint', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='samples', to='rewards.endpoint')),
                ('reward', models.FloatField(default=0.0)),
                ('repetition', models.FloatField(default=0.0)),
                ('steps', models.PositiveIntegerField(default=1)),
                ('tokens', models.PositiveIntegerField(default=0)),
            ],
            options={
                'indexes': [models.Index(fields=['endpoint', '-at'], name='score_sample_newest')],
            },
        ),
        migrations.CreateModel(
            name='EndpointRevision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('spec', models.JSONField()),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('endpoint', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='revisions', to='rewards.endpoint')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('endpoint', 'number'), name='revision_number_once')],
            },
        ),
        migrations.AddField(
            model_name='endpoint',
            name='active',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='rewards.endpointrevision'),
        ),
        migrations.AddField(
            model_name='endpoint',
            name='sample_days',
            field=models.PositiveSmallIntegerField(default=30),
        ),
        migrations.AddField(
            model_name='endpoint',
            name='sample_most',
            field=models.PositiveIntegerField(default=2000),
        ),
        migrations.AddField(
            model_name='endpoint',
            name='sample_patterns',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None),
        ),
        migrations.AddField(
            model_name='endpoint',
            name='sample_redacts',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=20), default=list, size=None),
        ),
        migrations.AddField(
            model_name='endpoint',
            name='sample_share',
            field=models.FloatField(default=0.0),
        ),
        migrations.CreateModel(
            name='RevisionModel',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('model', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='uses', to='training.rewardmodel')),
                ('revision', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='uses', to='rewards.endpointrevision')),
            ],
        ),
        migrations.AddField(
            model_name='endpointrevision',
            name='reward_models',
            field=models.ManyToManyField(related_name='revisions', through='rewards.RevisionModel', to='training.rewardmodel'),
        ),
        migrations.CreateModel(
            name='Trial',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('stage', models.CharField(choices=[('shadow', 'In the shadow'), ('canary', 'Canary'), ('promoted', 'Promoted'), ('withdrawn', 'Withdrawn')], max_length=10)),
                ('share', models.FloatField(default=0.0)),
                ('rules', models.JSONField(default=dict)),
                ('automatic', models.BooleanField(default=False)),
                ('reason', models.TextField(blank=True)),
                ('started_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('entered_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('ended_at', models.DateTimeField(null=True)),
                ('against', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='rewards.endpointrevision')),
                ('endpoint', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='trials', to='rewards.endpoint')),
                ('revision', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='trials', to='rewards.endpointrevision')),
                ('started_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('endpoint',), name='one_open_trial'), models.CheckConstraint(condition=models.Q(('share__gte', 0), ('share__lte', 1)), name='trial_share')],
            },
        ),
        migrations.CreateModel(
            name='TrialRollup',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('stage', models.CharField(max_length=10)),
                ('policy_version', models.CharField(blank=True, max_length=200)),
                ('pairs', models.BigIntegerField(default=0)),
                ('failed', models.BigIntegerField(default=0)),
                ('uncertain_active', models.BigIntegerField(default=0)),
                ('uncertain_candidate', models.BigIntegerField(default=0)),
                ('outside_active', models.BigIntegerField(default=0)),
                ('outside_candidate', models.BigIntegerField(default=0)),
                ('moments', django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), size=None)),
                ('trial', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='rollups', to='rewards.trial')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('trial', 'stage', 'policy_version'), name='trial_rollup_once')],
            },
        ),
        migrations.CreateModel(
            name='RevisionJudge',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('judge', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='asked_by', to='judges.judge')),
                ('revision', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='asks', to='rewards.endpointrevision')),
            ],
        ),
        migrations.AddField(
            model_name='endpointrevision',
            name='judges',
            field=models.ManyToManyField(related_name='revisions', through='rewards.RevisionJudge', to='judges.judge'),
        ),
    ]
