"""The least role that may see a notification, as the pages ask for that each is about."""

from django.db import migrations, models


def fill_roles(apps, schema_editor):
    rows = apps.get_model("inbox", "Notification").objects
    rows.filter(event__in=["job.succeeded", "job.failed", "alert.raised"]).update(least_role="researcher")
    mentions = rows.filter(event="comment.mention")
    mentions.filter(path__contains="/trajectories/").update(least_role="researcher")
    mentions.exclude(path__contains="/trajectories/").update(least_role="reviewer")


class Migration(migrations.Migration):
    dependencies = [("inbox", "0001_notifications")]

    operations = [
        migrations.AddField(
            model_name="notification",
            name="least_role",
            field=models.CharField(
                choices=[
                    ("annotator", "Annotator"),
                    ("reviewer", "Reviewer"),
                    ("researcher", "Researcher"),
                    ("owner", "Owner"),
                ],
                default="annotator",
                max_length=20,
            ),
        ),
        migrations.RunPython(fill_roles, migrations.RunPython.noop),
    ]
