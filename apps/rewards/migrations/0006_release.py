"""Trial becomes Release: rows stay, and the tables, one column and the constraints are renamed."""

import django.db.models.deletion
from django.db import migrations, models

OPEN = models.Q(("ended_at", None))
SHARE = models.Q(("share__gte", 0), ("share__lte", 1))


class Migration(migrations.Migration):
    dependencies = [
        ("monitoring", "0002_comparing_and_samples"),  # refers to the model by its old name
        ("rewards", "0005_endpoint_names_per_project"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="trialrollup", name="trial_rollup_once"),
        migrations.RemoveConstraint(model_name="trial", name="one_open_trial"),
        migrations.RemoveConstraint(model_name="trial", name="trial_share"),
        migrations.RenameModel(old_name="Trial", new_name="Release"),
        migrations.RenameModel(old_name="TrialRollup", new_name="ReleaseRollup"),
        migrations.RenameField(model_name="releaserollup", old_name="trial", new_name="release"),
        migrations.RenameField(model_name="release", old_name="entered_at", new_name="stage_started_at"),
        migrations.AlterField(
            model_name="release",
            name="endpoint",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="releases", to="rewards.endpoint"
            ),
        ),
        migrations.AlterField(
            model_name="release",
            name="revision",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="releases",
                to="rewards.endpointrevision",
            ),
        ),
        migrations.AlterField(
            model_name="release",
            name="stage",
            field=models.CharField(
                choices=[
                    ("shadow", "Shadow"),
                    ("canary", "Canary"),
                    ("promoted", "Promoted"),
                    ("withdrawn", "Rolled back"),
                ],
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            model_name="release",
            constraint=models.UniqueConstraint(condition=OPEN, fields=("endpoint",), name="one_open_release"),
        ),
        migrations.AddConstraint(
            model_name="release",
            constraint=models.CheckConstraint(condition=SHARE, name="release_share"),
        ),
        migrations.AddConstraint(
            model_name="releaserollup",
            constraint=models.UniqueConstraint(
                fields=("release", "stage", "policy_version"), name="release_rollup_once"
            ),
        ),
    ]
