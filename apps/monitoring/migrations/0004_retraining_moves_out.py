"""Names of today, and the tables of retraining cycles and follow-ups under those that the app `retraining` gives them."""

from django.conf import settings
import django.db.models.deletion
from django.db import migrations, models

RENAMED_FIELDS = {
    "monitor": {
        "told": "email_recipients",
        "online_every": "retrain_after",
        "learnt_to": "last_learned_sample",
        "looked_at": "checked_at",
    },
    "followup": {"asked_by": "requested_by", "asked_at": "requested_at"},
    "modelcomparison": {"turn": "cycle"},
    "retrainingcycle": {
        "against": "previous_model",
        "asks": "requested_comparisons",
        "tries": "staged_release",
        "is_ready": "awaits_confirmation",
        "run": "training_run",
        "trial": "release",
        "entered": "stage_times",
    },
}


class Migration(migrations.Migration):
    dependencies = [
        ("monitoring", "0003_dataset_version"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="letter", name="letter_once"),
        migrations.RemoveConstraint(model_name="turn", name="one_open_turn"),
        # From the one that nothing refers to on: undone in the other order, no reference is to a name of later.
        migrations.RenameModel(old_name="Comparing", new_name="ModelComparison"),
        migrations.RenameModel(old_name="Turn", new_name="RetrainingCycle"),
        migrations.RenameModel(old_name="Letter", new_name="AlertEmail"),
        *(
            migrations.RenameField(model_name=model, old_name=old, new_name=new)
            for model, fields in RENAMED_FIELDS.items()
            for old, new in fields.items()
        ),
        migrations.AlterField(
            model_name="alertemail",
            name="alert",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="emails",
                to="monitoring.alert",
            ),
        ),
        migrations.AlterField(
            model_name="alertemail",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="alert_emails",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddConstraint(
            model_name="alertemail",
            constraint=models.UniqueConstraint(fields=("alert", "user"), name="alert_email_once"),
        ),
        migrations.AddConstraint(
            model_name="retrainingcycle",
            constraint=models.UniqueConstraint(
                condition=models.Q(("ended_at", None)), fields=("endpoint",), name="one_open_retraining_cycle"
            ),
        ),
        migrations.AlterModelTable(name="modelcomparison", table="retraining_modelcomparison"),
        migrations.AlterModelTable(name="retrainingcycle", table="retraining_retrainingcycle"),
        migrations.AlterModelTable(name="followup", table="retraining_followup"),
    ]
