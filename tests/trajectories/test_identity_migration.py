"""Rows from before know their identity: the same file again brings nothing."""

import io
from importlib import import_module

from django.db import connection

from apps.accounts.models import Project
from apps.trajectories import services
from apps.trajectories.models import Trajectory
from tests.trajectories.conftest import lines, record

migration = import_module("apps.trajectories.migrations.0006_trajectory_identity")


def test_the_migration_computes_what_an_import_computes(project: Project) -> None:
    data = lines(record(1, agent={"name": "\N{GREEK SMALL LETTER ALPHA}", "version": "1"}, id="r"), record(2))
    services.import_trajectories(project=project, stream=io.BytesIO(data), by=None)
    before = dict(Trajectory.objects.values_list("pk", "identity"))
    Trajectory.objects.update(identity="")
    with connection.cursor() as cursor:
        cursor.execute(migration._IDENTITIES)
    assert dict(Trajectory.objects.values_list("pk", "identity")) == before
