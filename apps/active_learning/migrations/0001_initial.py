"""As the app made its tables when it was called `acquisition`: the next migration gives them their names of today."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    replaces = [('acquisition', '0001_initial')]

    dependencies = [
        ('annotation', '0003_fairness'),
        ('rewards', '0002_usage'),
    ]

    operations = [
        migrations.CreateModel(
            name='Plan',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('strategy', models.CharField(choices=[('mix', 'A mix: what teaches most, is new, and is like what is asked'), ('information_gain', 'What an answer would teach most (expected information gain)'), ('uncertainty', 'What the model is least sure of'), ('diversity', 'What is least like anything judged (k-center)'), ('representativeness', "What is most like the endpoint's traffic"), ('random', 'At random')], default='mix', max_length=20)),
                ('every', models.PositiveSmallIntegerField(default=10)),
                ('wanted', models.FloatField(blank=True, null=True)),
                ('campaign', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='acquisition', to='annotation.campaign')),
                ('endpoint', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='rewards.endpoint')),
            ],
            options={'db_table': 'acquisition_plan'},
        ),
        migrations.CreateModel(
            name='Selection',
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
                ('basis', models.CharField(blank=True, max_length=40)),
                ('through', models.CharField(blank=True, max_length=255)),
                ('artifact', models.CharField(blank=True, max_length=255)),
                ('result', models.JSONField(default=dict)),
                ('plan', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='selections', to='active_learning.plan')),
            ],
            options={'db_table': 'acquisition_selection'},
        ),
        migrations.CreateModel(
            name='Reason',
            fields=[
                ('item', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='reason', serialize=False, to='annotation.item')),
                ('strategy', models.CharField(choices=[('mix', 'A mix: what teaches most, is new, and is like what is asked'), ('information_gain', 'What an answer would teach most (expected information gain)'), ('uncertainty', 'What the model is least sure of'), ('diversity', 'What is least like anything judged (k-center)'), ('representativeness', "What is most like the endpoint's traffic"), ('random', 'At random')], max_length=20)),
                ('rank', models.PositiveIntegerField()),
                ('measures', models.JSONField()),
                ('selection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reasons', to='active_learning.selection')),
            ],
            options={'db_table': 'acquisition_reason'},
        ),
        migrations.AddConstraint(
            model_name='plan',
            constraint=models.CheckConstraint(condition=models.Q(('every__gte', 1)), name='plan_every'),
        ),
        migrations.AddConstraint(
            model_name='plan',
            constraint=models.CheckConstraint(condition=models.Q(('wanted', None), models.Q(('wanted__gt', 0.5), ('wanted__lt', 1)), _connector='OR'), name='plan_wanted'),
        ),
        migrations.AddConstraint(
            model_name='selection',
            constraint=models.UniqueConstraint(condition=models.Q(('state__in', ['queued', 'running'])), fields=('plan',), name='selection_one_at_a_time'),
        ),
    ]
