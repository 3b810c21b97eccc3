"""What an export's format has no line for, by reason."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("datasets", "0005_dataset_version")]

    operations = [
        migrations.AddField(
            model_name="export", name="left_out", field=models.JSONField(default=dict)
        ),
    ]
