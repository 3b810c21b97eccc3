from django.db import migrations, models

# As writer.identity_of: the first of equals.
_IDENTITIES = """
UPDATE trajectories_trajectory AS trajectory SET identity = encode(sha256(convert_to(concat_ws(E'\\x1f',
    task.external_id, trajectory.external_id, CASE trajectory.agent_name WHEN 'unknown' THEN '' ELSE trajectory.agent_name END,
    CASE trajectory.agent_version WHEN 'unknown' THEN '' ELSE trajectory.agent_version END, trajectory.content_hash, '0'), 'UTF8')), 'hex')
FROM trajectories_task AS task WHERE task.id = trajectory.task_id
"""


class Migration(migrations.Migration):
    """Equal content of another agent, id or sample is another trajectory."""

    dependencies = [("trajectories", "0005_field_counts")]

    operations = [
        migrations.AddField("import", "updated", models.PositiveIntegerField(default=0)),
        migrations.AddField(
            "trajectory", "identity", models.CharField(blank=True, default="", max_length=64), preserve_default=False
        ),
        migrations.RunSQL(_IDENTITIES, migrations.RunSQL.noop),
        migrations.RemoveConstraint("trajectory", "trajectory_once"),
        migrations.AddConstraint(
            "trajectory",
            models.UniqueConstraint(
                condition=models.Q(("identity", ""), _negated=True),
                fields=("project", "identity"),
                name="trajectory_identity",
            ),
        ),
        migrations.AddIndex(
            "trajectory", models.Index(fields=["project", "content_hash"], name="trajectory_content")
        ),
    ]
