import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('datasets', '0001_initial'), ('datasets', '0002_withdrawn'), ('datasets', '0003_export'), ('datasets', '0004_leaks')]

    initial = True

    dependencies = [
        ('accounts', '0001_squashed_0004_key_owners'),
    ]

    operations = [
        migrations.CreateModel(
            name='Snapshot',
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
                ('name', models.SlugField(max_length=60)),
                ('version', models.PositiveIntegerField()),
                ('filters', models.JSONField(default=dict)),
                ('content_hash', models.CharField(blank=True, max_length=64)),
                ('records', models.JSONField(default=dict)),
                ('splits', models.JSONField(default=dict)),
                ('tasks', models.JSONField(default=dict)),
                ('annotators', models.JSONField(default=dict)),
                ('usable_pairs', models.PositiveIntegerField(default=0)),
                ('artifact', models.CharField(blank=True, max_length=255)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='snapshots', to='accounts.project')),
                ('removed_at', models.DateTimeField(null=True)),
                ('withdrawn_at', models.DateTimeField(null=True)),
                ('withdrawn_because', models.CharField(blank=True, max_length=200)),
                ('leaks', models.JSONField(null=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('project', 'name', 'version'), name='snapshot_version_once')],
            },
        ),
        migrations.CreateModel(
            name='Export',
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
                ('format', models.CharField(max_length=20)),
                ('split', models.CharField(blank=True, max_length=10)),
                ('filters', models.JSONField(default=dict)),
                ('artifact', models.CharField(blank=True, max_length=255)),
                ('lines', models.PositiveBigIntegerField(default=0)),
                ('size', models.PositiveBigIntegerField(default=0)),
                ('sha256', models.CharField(blank=True, max_length=64)),
                ('removed_at', models.DateTimeField(null=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='exports', to='accounts.project')),
                ('snapshot', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='exports', to='datasets.snapshot')),
            ],
            options={
                'abstract': False,
            },
        ),
    ]
