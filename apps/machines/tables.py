"""The table of joined machines."""

from typing import Any

from django.db.models import QuerySet

from apps.core.distributions import installed_version
from apps.core.tables import DataTable, TableColumn
from apps.machines.models import Machine, MachineJobState
from apps.machines.selectors import is_current, live_machines


class MachineTable(DataTable[Machine]):
    """options: project. Runs of other projects are not named."""

    name = "machines"
    nouns = ("machine", "machines")
    default_sort = "-joined"
    has_file = False
    columns = (
        TableColumn("name", "Machine", template="machines/cells/_machine.html", sort="name", is_fixed=True),
        TableColumn("device", "Device", sort="device"),
        TableColumn("version", "Version", sort="version", template="machines/cells/_version.html"),
        TableColumn("seen", "Last seen", value="last_seen_at", sort="last_seen_at", kind="time"),
        TableColumn("run", "Run", value="pk", template="machines/cells/_run.html"),
        TableColumn("joined", "Joined", value="joined_at", sort="joined_at", kind="time"),
        TableColumn("joined_by", "Joined by", sort="joined_by__email", is_shown=False),
        TableColumn("actions", "Actions", value="pk", template="machines/cells/_actions.html", is_fixed=True),
    )

    def load(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.select_related("joined_by", "project").prefetch_related("jobs")

    def prepare(self, rows: list[Any]) -> list[Any]:
        live = set(live_machines().filter(pk__in=[row.pk for row in rows]).values_list("pk", flat=True))
        for row in rows:
            row.is_live, row.is_current = row.pk in live, is_current(row)
            row.needed_version = installed_version()
            running = [job for job in row.jobs.all() if job.state == MachineJobState.RUNNING]
            row.job = running[0] if running else None
            row.run_number = row.job.run.rpartition("/")[2] if row.job else ""
        return rows

    def row_label(self, row: Machine) -> str:
        return row.name
