"""What monitoring had, in tables that it has given their names of here: only the state changes, and content types."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


MODELS = ['followup', 'retrainingcycle', 'modelcomparison']


def move_content_types(old, new):
    def move(apps, schema_editor):
        content_types = apps.get_model('contenttypes', 'ContentType').objects
        there = content_types.filter(app_label=new).values('model')
        moved = content_types.filter(app_label=old, model__in=MODELS).exclude(model__in=there)
        moved.update(app_label=new)

    return move


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('annotation', '0001_squashed_0004_judges'),
        ('contenttypes', '0002_remove_content_type_name'),
        ('datasets', '0005_dataset_version'),
        ('monitoring', '0004_retraining_moves_out'),
        ('rewards', '0006_release'),
        ('training', '0005_training_run'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name='FollowUp',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('items', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None)),
                        ('samples', models.JSONField(default=dict)),
                        ('requested_at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('alert', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='follow_ups', to='monitoring.alert')),
                        ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='follow_ups', to='annotation.campaign')),
                        ('endpoint', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='follow_ups', to='rewards.endpoint')),
                        ('requested_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                    ],
                ),
                migrations.CreateModel(
                    name='RetrainingCycle',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('stage', models.CharField(choices=[('asking', 'Annotation'), ('freezing', 'Dataset freeze'), ('training', 'Training'), ('comparing', 'Model comparison'), ('trying', 'Release'), ('done', 'Promoted'), ('stopped', 'Stopped')], max_length=10)),
                        ('requested_comparisons', models.PositiveIntegerField(default=0)),
                        ('heads_only', models.BooleanField(default=True)),
                        ('staged_release', models.BooleanField(default=True)),
                        ('automatic', models.BooleanField(default=False)),
                        ('awaits_confirmation', models.BooleanField(default=False)),
                        ('stage_times', models.JSONField(default=dict)),
                        ('reason', models.TextField(blank=True)),
                        ('started_at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('ended_at', models.DateTimeField(null=True)),
                        ('dataset_version', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='retraining_cycles', to='datasets.datasetversion')),
                        ('endpoint', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='retraining_cycles', to='rewards.endpoint')),
                        ('follow_up', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='retraining_cycles', to='retraining.followup')),
                        ('previous_model', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='training.rewardmodel')),
                        ('release', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='retraining_cycles', to='rewards.release')),
                        ('started_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                        ('training_run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='retraining_cycles', to='training.trainingrun')),
                    ],
                ),
                migrations.CreateModel(
                    name='ModelComparison',
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
                        ('dataset_versions', models.ManyToManyField(related_name='+', to='datasets.datasetversion')),
                        ('cycle', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='model_comparison', to='retraining.retrainingcycle')),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.AddConstraint(
                    model_name='retrainingcycle',
                    constraint=models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('endpoint',), name='one_open_retraining_cycle'),
                ),
            ],
        ),
        migrations.RunPython(
            move_content_types('monitoring', 'retraining'), move_content_types('retraining', 'monitoring')
        ),
    ]
