import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("bulk", "0003_filter_length"), ("rewards", "0009_servers_and_standby")]

    operations = [
        migrations.RemoveConstraint("bulkjob", "bulk_job_has_its_engine"),
        migrations.AddField(
            "bulkjob",
            "revision",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="bulk_jobs",
                to="rewards.endpointrevision",
            ),
        ),
        migrations.AlterField(
            "bulkjob",
            "work",
            models.CharField(
                choices=[
                    ("score", "Score by a reward model"),
                    ("embed", "Embed by a reward model"),
                    ("judge", "Score by a judge"),
                    ("induce", "Judge by induced metrics"),
                    ("endpoint", "Score with an endpoint"),
                ],
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            "bulkjob",
            models.CheckConstraint(
                condition=Q(work="judge", judge__isnull=False, model=None, induction=None, revision=None)
                | Q(work="induce", induction__isnull=False, model=None, judge=None, revision=None)
                | Q(work="endpoint", revision__isnull=False, model=None, judge=None, induction=None)
                | Q(work__in=["score", "embed"], model__isnull=False, judge=None, induction=None, revision=None),
                name="bulk_job_has_its_engine",
            ),
        ),
    ]
