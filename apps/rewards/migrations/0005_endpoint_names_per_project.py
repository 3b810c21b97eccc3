"""Endpoint names are unique per project: a key says whose endpoint a trainer means."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("rewards", "0004_judges")]

    operations = [
        migrations.AlterField("endpoint", "name", models.SlugField(max_length=60)),
        migrations.AddConstraint(
            "endpoint",
            models.UniqueConstraint(fields=["project", "name"], name="endpoint_name_per_project"),
        ),
    ]
