import apps.annotation.models
import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('annotation', '0001_initial'), ('annotation', '0002_kinds'), ('annotation', '0003_fairness'), ('annotation', '0004_judges')]

    initial = True

    dependencies = [
        ('accounts', '0001_squashed_0004_key_owners'),
        ('rubrics', '0001_squashed_0002_rubrics'),
        ('trajectories', '0001_squashed_0004_facts'),
    ]

    operations = [
        migrations.CreateModel(
            name='Annotator',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=254)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='annotators', to='accounts.project')),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='annotators', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('project', 'user'), name='annotator_user_once'), models.UniqueConstraint(condition=models.Q(('user', None)), fields=('project', 'name'), name='annotator_name_once')],
            },
        ),
        migrations.CreateModel(
            name='Campaign',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200)),
                ('kinds', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=10), size=None)),
                ('guidelines', models.TextField(blank=True)),
                ('overlap', models.PositiveSmallIntegerField(default=1)),
                ('ordering', models.CharField(choices=[('random', 'Random'), ('priority', 'Priority'), ('active', 'Most informative first')], default='random', max_length=10)),
                ('swap_sides', models.BooleanField(default=True)),
                ('blind_agents', models.BooleanField(default=True)),
                ('show_outcome', models.BooleanField(default=False)),
                ('lease_minutes', models.PositiveSmallIntegerField(default=30)),
                ('state', models.CharField(choices=[('open', 'Open'), ('paused', 'Paused'), ('closed', 'Closed'), ('archived', 'Archived')], default='open', max_length=10)),
                ('version', models.PositiveIntegerField(default=1)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='campaigns', to='accounts.project')),
                ('deadline', models.DateTimeField(blank=True, null=True)),
                ('most_each', models.PositiveIntegerField(blank=True, null=True)),
                ('options', models.JSONField(blank=True, default=dict)),
                ('rubric', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='campaigns', to='rubrics.rubric')),
                ('done_at', models.DateTimeField(blank=True, null=True)),
                ('gold_percent', models.PositiveSmallIntegerField(default=10)),
                ('gold_threshold', models.PositiveSmallIntegerField(default=70)),
                ('hourly_pay', models.DecimalField(blank=True, decimal_places=2, max_digits=8, null=True)),
                ('in_pilot', models.BooleanField(default=False)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('project', 'name'), name='campaign_name_once'), models.CheckConstraint(condition=models.Q(('overlap__gte', 1)), name='campaign_overlap'), models.CheckConstraint(condition=models.Q(('gold_percent__lte', 100), ('gold_threshold__lte', 100)), name='campaign_gold_percents')],
            },
        ),
        migrations.CreateModel(
            name='Participation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('paused_at', models.DateTimeField(null=True)),
                ('reason', models.TextField(blank=True)),
                ('gold_from', models.DateTimeField(null=True)),
                ('annotator', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='participations', to='annotation.annotator')),
                ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='participations', to='annotation.campaign')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('campaign', 'annotator'), name='participation_once')],
            },
        ),
        migrations.CreateModel(
            name='Item',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=200)),
                ('priority', models.FloatField(default=0)),
                ('random_key', models.BigIntegerField(default=apps.annotation.models.random_key)),
                ('wanted', models.PositiveSmallIntegerField()),
                ('taken', models.PositiveSmallIntegerField(default=0)),
                ('done', models.PositiveSmallIntegerField(default=0)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='items', to='annotation.campaign')),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='items', to='trajectories.task')),
                ('explanation', models.TextField(blank=True)),
                ('in_pilot', models.BooleanField(default=False)),
                ('purpose', models.CharField(choices=[('work', 'Work'), ('gold', 'Gold'), ('practice', 'Practice'), ('example', 'Example')], default='work', max_length=10)),
                ('score', models.FloatField(null=True)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('taken__lt', models.F('wanted'))), fields=['campaign', 'taken', 'random_key'], name='item_random'), models.Index(condition=models.Q(('taken__lt', models.F('wanted'))), fields=['campaign', '-priority', 'taken', 'random_key'], name='item_priority'), models.Index(models.F('campaign'), models.OrderBy(models.F('score'), descending=True, nulls_last=True), models.F('taken'), models.F('random_key'), condition=models.Q(('taken__lt', models.F('wanted'))), name='item_active'), models.Index(condition=models.Q(('in_pilot', True), ('taken__lt', models.F('wanted'))), fields=['campaign', 'taken', 'random_key'], name='item_pilot'), models.Index(condition=models.Q(('purpose', 'work'), _negated=True), fields=['campaign', 'purpose'], name='item_with_answer')],
                'constraints': [models.UniqueConstraint(fields=('campaign', 'key'), name='item_key_once'), models.CheckConstraint(condition=models.Q(('done__lte', models.F('taken'))), name='item_done_within_taken')],
            },
        ),
        migrations.CreateModel(
            name='Assignment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('given', 'Given'), ('leased', 'Leased'), ('submitted', 'Submitted'), ('skipped', 'Skipped'), ('flagged', 'Flagged'), ('expired', 'Expired'), ('open', 'Open'), ('judged', 'by a judge')], default='leased', max_length=10)),
                ('leased_until', models.DateTimeField(null=True)),
                ('swapped', models.BooleanField(default=False)),
                ('draft', models.JSONField(default=dict)),
                ('draft_saved_at', models.DateTimeField(null=True)),
                ('active_seconds', models.FloatField(default=0)),
                ('reason', models.TextField(blank=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('annotator', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='assignments', to='annotation.annotator')),
                ('item', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='assignments', to='annotation.item')),
                ('is_adjudication', models.BooleanField(default=False)),
                ('is_given', models.BooleanField(default=False)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('state', 'leased')), fields=['leased_until'], name='assignment_leases'), models.Index(condition=models.Q(('state', 'given')), fields=['annotator'], name='assignment_given')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('state', 'leased')), fields=('annotator',), name='assignment_one_lease'), models.CheckConstraint(condition=models.Q(models.Q(('state', 'leased'), _negated=True), ('leased_until__isnull', False), _connector='OR'), name='assignment_lease_has_end'), models.UniqueConstraint(fields=('item', 'annotator', 'is_adjudication'), name='assignment_once')],
            },
        ),
        migrations.CreateModel(
            name='ItemTrajectory',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveSmallIntegerField()),
                ('item', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='places', to='annotation.item')),
                ('trajectory', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='places', to='trajectories.trajectory')),
            ],
            options={
                'ordering': ['item', 'position'],
                'constraints': [models.UniqueConstraint(fields=('item', 'position'), name='place_once'), models.UniqueConstraint(fields=('item', 'trajectory'), name='place_never_with_itself')],
            },
        ),
        migrations.AddField(
            model_name='item',
            name='trajectories',
            field=models.ManyToManyField(related_name='items', through='annotation.ItemTrajectory', to='trajectories.trajectory'),
        ),
        migrations.CreateModel(
            name='Submission',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('revision', models.PositiveIntegerField(default=1)),
                ('idempotency_key', models.UUIDField(default=uuid.uuid4, unique=True)),
                ('origin', models.CharField(choices=[('person', 'Person'), ('judge', 'Judge'), ('simulated', 'Simulated'), ('imported', 'Imported')], default='person', max_length=10)),
                ('campaign_version', models.PositiveIntegerField(default=1)),
                ('active_seconds', models.FloatField(null=True)),
                ('aside', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('assignment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='submissions', to='annotation.assignment')),
                ('digest', models.CharField(max_length=64, null=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('assignment', 'revision'), name='submission_revision_once')],
            },
        ),
        migrations.CreateModel(
            name='Preference',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('choice', models.CharField(choices=[('a', 'a'), ('tie', 'tie'), ('b', 'b'), ('both_bad', 'both_bad')], max_length=8)),
                ('strength', models.PositiveSmallIntegerField(default=1)),
                ('criterion', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to='rubrics.criterion')),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='%(class)ss', to='annotation.submission')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('submission', 'criterion'), name='preference_once', nulls_distinct=False), models.CheckConstraint(condition=models.Q(('choice__in', ['a', 'b', 'tie', 'both_bad'])), name='preference_choice'), models.CheckConstraint(condition=models.Q(('strength__gte', 1), ('strength__lte', 3)), name='preference_strength')],
            },
        ),
        migrations.CreateModel(
            name='Comment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('text', models.TextField()),
                ('first_step', models.PositiveIntegerField(null=True)),
                ('last_step', models.PositiveIntegerField(null=True)),
                ('quote', models.TextField(blank=True)),
                ('first_char', models.PositiveIntegerField(null=True)),
                ('last_char', models.PositiveIntegerField(null=True)),
                ('sign', models.SmallIntegerField(null=True)),
                ('trajectory', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='comments', to='trajectories.trajectory')),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='%(class)ss', to='annotation.submission')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('text', ''), _negated=True), name='comment_says_something'), models.CheckConstraint(condition=models.Q(('sign', None), ('sign__in', [-1, 1]), _connector='OR'), name='comment_sign'), models.CheckConstraint(condition=models.Q(models.Q(('first_step', None), ('last_step', None)), ('first_step__lte', models.F('last_step')), _connector='OR'), name='comment_anchor')],
            },
        ),
        migrations.CreateModel(
            name='Marking',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('labels', models.JSONField(default=dict)),
                ('corrections', models.JSONField(default=dict)),
                ('has_first_error', models.BooleanField(default=False)),
                ('first_error', models.PositiveIntegerField(null=True)),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='%(class)ss', to='annotation.submission')),
                ('trajectory', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='markings', to='trajectories.trajectory')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('submission', 'trajectory'), name='marking_once'), models.CheckConstraint(condition=models.Q(('has_first_error', True), models.Q(models.Q(('labels', {}), _negated=True), ('first_error', None)), _connector='OR'), name='marking_says_something')],
            },
        ),
        migrations.CreateModel(
            name='Ranking',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('ranks', django.contrib.postgres.fields.ArrayField(base_field=models.PositiveSmallIntegerField(), size=None)),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='%(class)ss', to='annotation.submission')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('submission',), name='ranking_once')],
            },
        ),
        migrations.CreateModel(
            name='Rating',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('accept', models.BooleanField(null=True)),
                ('rating', models.FloatField(null=True)),
                ('low', models.FloatField(null=True)),
                ('high', models.FloatField(null=True)),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='%(class)ss', to='annotation.submission')),
                ('trajectory', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='ratings', to='trajectories.trajectory')),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('rating', None)), fields=('submission', 'trajectory'), name='rating_accept_once'), models.UniqueConstraint(condition=models.Q(('accept', None)), fields=('submission', 'trajectory'), name='rating_number_once'), models.CheckConstraint(condition=models.Q(models.Q(('accept__isnull', False), ('high', None), ('low', None), ('rating', None)), models.Q(('accept', None), ('low__lt', models.F('high')), ('rating__gte', models.F('low')), ('rating__lte', models.F('high'))), _connector='OR'), name='rating_one_of_two')],
            },
        ),
        migrations.CreateModel(
            name='Score',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('value', models.FloatField()),
                ('low', models.FloatField()),
                ('high', models.FloatField()),
                ('note', models.TextField(blank=True)),
                ('criterion', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='scores', to='rubrics.criterion')),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='%(class)ss', to='annotation.submission')),
                ('trajectory', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='scores', to='trajectories.trajectory')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('submission', 'trajectory', 'criterion'), name='score_once'), models.CheckConstraint(condition=models.Q(('low__lt', models.F('high')), ('value__gte', models.F('low')), ('value__lte', models.F('high'))), name='score_on_scale')],
            },
        ),
    ]
