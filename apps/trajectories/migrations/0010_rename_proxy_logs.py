"""Logs of Helicone and OpenPipe are of the format `proxy-logs`, which earlier versions called `call-logs`."""

from typing import Any

from django.db import migrations

OLD, NEW = "call-logs", "proxy-logs"


def _renamed(apps: Any, old: str, new: str) -> None:
    apps.get_model("trajectories", "Trajectory").objects.filter(source_format=old).update(source_format=new)


def rename(apps: Any, schema_editor: Any) -> None:
    _renamed(apps, OLD, NEW)


def rename_back(apps: Any, schema_editor: Any) -> None:
    _renamed(apps, NEW, OLD)


class Migration(migrations.Migration):
    dependencies = [("trajectories", "0009_mappings")]
    operations = [migrations.RunPython(rename, rename_back)]
