"""Retraining cycles and follow-ups are of the app `retraining` from here on; their tables stay."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("monitoring", "0004_retraining_moves_out"),
        ("retraining", "0001_initial"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.DeleteModel(name="ModelComparison"),
                migrations.DeleteModel(name="RetrainingCycle"),
                migrations.DeleteModel(name="FollowUp"),
            ]
        )
    ]
