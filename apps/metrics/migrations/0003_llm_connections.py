"""Inductions refer to the connections of the app `llm`: the same table, so only Django's state changes."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("llm", "0001_initial"), ("metrics", "0002_language_models")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="induction",
                    name="language_model",
                    field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="llm.llmconnection"),
                ),
            ],
        ),
        migrations.RenameField(model_name="induction", old_name="language_model", new_name="llm_connection"),
    ]
