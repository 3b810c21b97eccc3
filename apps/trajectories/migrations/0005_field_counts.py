import django.contrib.postgres.indexes
import django.db.models.functions
from django.db import migrations, models


class Migration(migrations.Migration):
    """What of a file is not read, in the results of its import; long task ids; traces that are not read yet."""

    dependencies = [("trajectories", "0004_facts")]

    operations = [
        migrations.AddField("import", "dropped", models.JSONField(default=list)),
        migrations.AddField("import", "kept", models.JSONField(default=list)),
        migrations.AddField("trace", "is_unread", models.BooleanField(default=False)),
        migrations.AddField("tracespan", "size", models.PositiveBigIntegerField(default=0)),
        migrations.RemoveConstraint("task", "task_once"),
        migrations.AlterField("task", "external_id", models.CharField(max_length=2000)),
        migrations.AddConstraint(
            "task",
            models.UniqueConstraint(
                models.F("project"), django.db.models.functions.MD5("external_id"), name="task_once"
            ),
        ),
        migrations.AddIndex(
            "task", django.contrib.postgres.indexes.HashIndex(fields=["external_id"], name="task_external_id")
        ),
    ]
