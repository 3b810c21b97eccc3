from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotation", "0009_drafts_and_suggestions")]

    operations = [
        migrations.AddIndex(
            "assignment",
            models.Index(
                fields=["lock_expires_at"],
                condition=models.Q(("lock_expires_at__isnull", False), ("state", "assigned")),
                name="assignment_batches",
            ),
        ),
    ]
