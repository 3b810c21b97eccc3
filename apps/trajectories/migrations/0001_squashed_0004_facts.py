import apps.trajectories.fields
import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('trajectories', '0001_initial'), ('trajectories', '0002_search'), ('trajectories', '0003_traces'), ('trajectories', '0004_facts')]

    initial = True

    dependencies = [
        ('accounts', '0001_squashed_0004_key_owners'),
    ]

    operations = [
        migrations.CreateModel(
            name='Task',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('external_id', models.CharField(max_length=200)),
                ('instruction', models.TextField(blank=True)),
                ('reference', models.TextField(null=True)),
                ('metadata', models.JSONField(default=dict)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tasks', to='accounts.project')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('project', 'external_id'), name='task_once')],
            },
        ),
        migrations.CreateModel(
            name='Trajectory',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('external_id', models.CharField(blank=True, max_length=200)),
                ('agent_name', models.CharField(blank=True, max_length=200)),
                ('agent_version', models.CharField(blank=True, max_length=200)),
                ('source_format', models.CharField(max_length=40)),
                ('content_hash', models.CharField(max_length=64)),
                ('step_count', models.PositiveIntegerField()),
                ('agent_step_count', models.PositiveIntegerField()),
                ('token_count', models.PositiveIntegerField()),
                ('outcome_reward', models.FloatField(null=True)),
                ('success', models.BooleanField(null=True)),
                ('metadata', models.JSONField(default=dict)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='trajectories', to='accounts.project')),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='trajectories', to='trajectories.task')),
                ('patterns', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=30), null=True, size=None)),
                ('tags', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=60), db_default=[], default=list, size=None)),
            ],
            options={
                'verbose_name_plural': 'trajectories',
                'indexes': [models.Index(fields=['project', '-created_at', '-id'], name='trajectory_newest'), models.Index(fields=['project', 'external_id'], name='trajectory_external'), models.Index(fields=['project', 'agent_name', 'agent_version', '-created_at', '-id'], name='trajectory_agent'), models.Index(condition=models.Q(('patterns__isnull', True)), fields=['project'], name='trajectory_unindexed'), django.contrib.postgres.indexes.GinIndex(fields=['patterns'], name='trajectory_patterns'), django.contrib.postgres.indexes.GinIndex(fields=['tags'], name='trajectory_tags'), django.contrib.postgres.indexes.GinIndex(fields=['metadata'], name='trajectory_metadata', opclasses=['jsonb_path_ops'])],
                'constraints': [models.UniqueConstraint(fields=('project', 'content_hash'), name='trajectory_once'), models.CheckConstraint(condition=models.Q(('agent_step_count__gt', 0)), name='trajectory_agent_steps')],
            },
        ),
        migrations.CreateModel(
            name='Document',
            fields=[
                ('trajectory', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='document', serialize=False, to='trajectories.trajectory')),
                ('data', models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name='Import',
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
                ('filename', models.CharField(max_length=255)),
                ('file', models.CharField(max_length=255)),
                ('format', models.CharField(max_length=40)),
                ('keep_good', models.BooleanField(default=False)),
                ('created', models.PositiveIntegerField(default=0)),
                ('duplicates', models.PositiveIntegerField(default=0)),
                ('rejected', models.JSONField(default=list)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='imports', to='accounts.project')),
                ('uploaded_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Attachment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('sha256', models.CharField(max_length=64)),
                ('media_type', models.CharField(max_length=100)),
                ('size', models.PositiveBigIntegerField()),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='attachments', to='accounts.project')),
                ('height', models.PositiveIntegerField(null=True)),
                ('width', models.PositiveIntegerField(null=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('project', 'sha256'), name='attachment_once')],
            },
        ),
        migrations.CreateModel(
            name='Step',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('index', models.PositiveIntegerField()),
                ('agent_step', models.PositiveIntegerField(null=True)),
                ('source', models.CharField(max_length=11)),
                ('message', apps.trajectories.fields.OrderedJSONField(default=list)),
                ('reasoning', models.TextField(null=True)),
                ('tool_calls', apps.trajectories.fields.OrderedJSONField(default=list)),
                ('observation', apps.trajectories.fields.OrderedJSONField(default=list)),
                ('features', apps.trajectories.fields.OrderedJSONField(null=True)),
                ('reward', models.FloatField(null=True)),
                ('metrics', apps.trajectories.fields.OrderedJSONField(default=dict)),
                ('extra', apps.trajectories.fields.OrderedJSONField(default=dict)),
                ('trajectory', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='steps', to='trajectories.trajectory')),
            ],
            options={
                'ordering': ['trajectory', 'index'],
                'constraints': [models.UniqueConstraint(fields=('trajectory', 'index'), name='step_index_once'), models.CheckConstraint(condition=models.Q(('source__in', ['system', 'user', 'agent', 'environment'])), name='step_source'), models.CheckConstraint(condition=models.Q(models.Q(('agent_step__isnull', False), ('source', 'agent')), models.Q(models.Q(('source', 'agent'), _negated=True), ('agent_step__isnull', True)), _connector='OR'), name='step_agent_index')],
            },
        ),
        migrations.CreateModel(
            name='SavedFilter',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60)),
                ('query', models.CharField(max_length=2000)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='saved_filters', to='accounts.project')),
            ],
            options={
                'ordering': ['name'],
                'constraints': [models.UniqueConstraint(fields=('project', 'name'), name='saved_filter_once')],
            },
        ),
        migrations.CreateModel(
            name='SearchText',
            fields=[
                ('trajectory', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='search_text', serialize=False, to='trajectories.trajectory')),
                ('words', django.contrib.postgres.search.SearchVectorField()),
            ],
            options={
                'indexes': [django.contrib.postgres.indexes.GinIndex(fields=['words'], name='search_text_words')],
            },
        ),
        migrations.CreateModel(
            name='Trace',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=64)),
                ('size', models.PositiveBigIntegerField(default=0)),
                ('last_at', models.DateTimeField()),
                ('look_at', models.DateTimeField(null=True)),
                ('trajectories', models.PositiveIntegerField(null=True)),
                ('error', models.TextField(blank=True)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='traces', to='accounts.project')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('look_at__isnull', False)), fields=['look_at'], name='trace_due'), models.Index(fields=['project', '-last_at'], name='trace_newest')],
                'constraints': [models.UniqueConstraint(fields=('project', 'name'), name='trace_once')],
            },
        ),
        migrations.CreateModel(
            name='TraceSpan',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=64)),
                ('parent', models.CharField(blank=True, max_length=64)),
                ('is_root', models.BooleanField()),
                ('data', models.BinaryField()),
                ('trace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='spans', to='trajectories.trace')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('trace', 'name'), name='trace_span_once')],
            },
        ),
        migrations.CreateModel(
            name='TrajectoryFact',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=20)),
                ('name', models.CharField(max_length=200)),
                ('value', models.FloatField()),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.project')),
                ('trajectory', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='facts', to='trajectories.trajectory')),
            ],
            options={
                'indexes': [models.Index(fields=['project', 'name', 'value'], name='fact_by_name')],
                'constraints': [models.UniqueConstraint(fields=('trajectory', 'kind', 'name'), name='fact_once')],
            },
        ),
    ]
