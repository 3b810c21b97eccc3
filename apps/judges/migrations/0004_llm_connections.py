"""Judges refer to the connections of the app `llm`: the same table, so only Django's state changes."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("judges", "0003_judges"), ("llm", "0001_initial")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="judge",
                    name="language_model",
                    field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="judges", to="llm.llmconnection"),
                ),
            ],
        ),
        migrations.RenameField(model_name="judge", old_name="language_model", new_name="llm_connection"),
    ]
