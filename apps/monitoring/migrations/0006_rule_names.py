"""The default rules have the field's names; alerts and stored rules of today keep counting as theirs."""

from typing import Any

from django.db import migrations
from django.db.models import Exists, OuterRef

RENAMED = {
    "rewards drift": "reward drift",
    "lengths drift": "length drift",
    "uncertain": "high uncertainty",
    "length is rewarded": "length correlation",
    "steps are rewarded": "step count correlation",
    "reward without gold": "overoptimization",
    "people disagree": "annotator disagreement",
}


def rename(apps: Any, names: dict[str, str]) -> None:
    alerts, monitors = apps.get_model("monitoring", "Alert"), apps.get_model("monitoring", "Monitor")
    for old, new in names.items():
        # A rule that someone wrote may have the new name already: both its alerts and those of the old name stay.
        twins = alerts.objects.filter(
            endpoint=OuterRef("endpoint"), version=OuterRef("version"), run=OuterRef("run"), rule=new
        )
        alerts.objects.filter(~Exists(twins), rule=old).update(rule=new)
    for monitor in monitors.objects.exclude(rules=[]).iterator():
        taken = {rule["name"] for rule in monitor.rules}
        rules = [
            rule | {"name": names[rule["name"]]}
            if rule["name"] in names and names[rule["name"]] not in taken
            else rule
            for rule in monitor.rules
        ]
        if rules != monitor.rules:
            monitor.rules = rules
            monitor.save(update_fields=["rules"])


def forwards(apps: Any, schema_editor: Any) -> None:
    rename(apps, RENAMED)


def backwards(apps: Any, schema_editor: Any) -> None:
    rename(apps, {new: old for old, new in RENAMED.items()})


class Migration(migrations.Migration):
    dependencies = [("monitoring", "0005_retraining_moved_out")]
    operations = [migrations.RunPython(forwards, backwards)]
