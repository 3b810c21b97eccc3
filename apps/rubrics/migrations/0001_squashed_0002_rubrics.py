import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('rubrics', '0001_initial'), ('rubrics', '0002_rubrics')]

    initial = True

    dependencies = [
        ('accounts', '0001_squashed_0004_key_owners'),
    ]

    operations = [
        migrations.CreateModel(
            name='Criterion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200)),
                ('version', models.PositiveIntegerField(default=1)),
                ('definition', models.TextField(blank=True)),
                ('origin', models.CharField(choices=[('human', 'Human'), ('induced', 'Induced'), ('imported', 'Imported')], default='human', max_length=10)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='criteria', to='accounts.project')),
                ('bad_example', models.TextField(blank=True)),
                ('good_example', models.TextField(blank=True)),
                ('scale_high', models.FloatField(default=5)),
                ('scale_low', models.FloatField(default=1)),
            ],
            options={
                'verbose_name_plural': 'criteria',
                'constraints': [models.UniqueConstraint(fields=('project', 'name', 'version'), name='criterion_version_once'), models.CheckConstraint(condition=models.Q(('scale_low__lt', models.F('scale_high'))), name='criterion_scale')],
            },
        ),
        migrations.CreateModel(
            name='Rubric',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200)),
                ('version', models.PositiveIntegerField(default=1)),
                ('about', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='rubrics', to='accounts.project')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('project', 'name', 'version'), name='rubric_version_once')],
            },
        ),
        migrations.CreateModel(
            name='RubricCriterion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveSmallIntegerField()),
                ('rank', models.PositiveSmallIntegerField(default=1)),
                ('weight', models.FloatField(default=1)),
                ('criterion', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='entries', to='rubrics.criterion')),
                ('rubric', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='entries', to='rubrics.rubric')),
            ],
            options={
                'ordering': ['rubric', 'position'],
                'constraints': [models.UniqueConstraint(fields=('rubric', 'criterion'), name='rubric_criterion_once'), models.UniqueConstraint(fields=('rubric', 'position'), name='rubric_position_once'), models.CheckConstraint(condition=models.Q(('rank__gte', 1)), name='rubric_rank')],
            },
        ),
        migrations.AddField(
            model_name='rubric',
            name='criteria',
            field=models.ManyToManyField(related_name='rubrics', through='rubrics.RubricCriterion', to='rubrics.criterion'),
        ),
    ]
