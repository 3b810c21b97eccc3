import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("trajectories", "0010_rename_proxy_logs")]

    operations = [
        migrations.RenameModel("SavedFilter", "SavedView"),
        migrations.RemoveConstraint("savedview", "saved_filter_once"),
        migrations.AlterField("savedview", "query", models.TextField()),
        migrations.AddField("savedview", "created_at", models.DateTimeField(default=django.utils.timezone.now)),
        migrations.AlterField(
            "savedview",
            "project",
            models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="saved_views", to="accounts.project"
            ),
        ),
        migrations.AddConstraint(
            "savedview", models.UniqueConstraint(fields=("project", "name"), name="saved_view_once")
        ),
        migrations.AddField(
            "trajectory",
            "tools",
            django.contrib.postgres.fields.ArrayField(models.CharField(max_length=200), null=True),
        ),
        migrations.AddField(
            "trajectory",
            "failed_tools",
            django.contrib.postgres.fields.ArrayField(models.CharField(max_length=200), null=True),
        ),
        migrations.AddField(
            "trajectory",
            "import_job",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="trajectories",
                to="trajectories.import",
            ),
        ),
        migrations.RemoveIndex("trajectory", "trajectory_unindexed"),
        migrations.AddIndex(
            "trajectory",
            models.Index(
                condition=models.Q(("tools__isnull", True)), fields=["project"], name="trajectory_no_tools"
            ),
        ),
        migrations.AddIndex(
            "trajectory",
            django.contrib.postgres.indexes.GinIndex(fields=["tools"], name="trajectory_tools"),
        ),
        migrations.AddIndex(
            "trajectory",
            django.contrib.postgres.indexes.GinIndex(fields=["failed_tools"], name="trajectory_failed_tools"),
        ),
    ]
