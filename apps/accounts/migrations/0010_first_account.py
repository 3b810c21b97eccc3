"""That there has been an account, so that the link of the first one works once."""

import django.utils.timezone
from django.db import migrations, models


def note_accounts(apps, schema_editor):
    if apps.get_model("accounts", "User").objects.exists():
        apps.get_model("accounts", "FirstAccount").objects.create(pk=1)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0009_project_numbers")]

    operations = [
        migrations.CreateModel(
            name="FirstAccount",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="first_account_once")
                ],
            },
        ),
        migrations.RunPython(note_accounts, migrations.RunPython.noop),
    ]
