from django.db import migrations, models


class Migration(migrations.Migration):
    """Who spoke, where several agents or people share a source."""

    dependencies = [("trajectories", "0006_trajectory_identity")]

    operations = [
        migrations.AddField("step", "speaker", models.CharField(max_length=200, null=True)),
        migrations.AddIndex(
            "step",
            models.Index(
                condition=models.Q(("speaker__isnull", False)),
                fields=["speaker", "trajectory"],
                name="step_speaker",
            ),
        ),
    ]
