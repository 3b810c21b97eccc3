"""The table of hindsight tasks."""

from django.db.models import QuerySet
from django.urls import reverse

from apps.core.tables import DataTable, TableColumn, TableFilter
from apps.hindsight.models import HindsightTask

_SHOWN = 120  # characters of a text


class HindsightTable(DataTable[HindsightTask]):
    """options: project."""

    name = "hindsight-tasks"
    nouns = ("trajectory", "trajectories")
    default_sort = "-changed"
    filters = (
        TableFilter(
            "state", "State", [(str(each.value), str(each.label)) for each in HindsightTask.State], "state"
        ),
    )
    columns = (
        TableColumn(
            "text", "Task in hindsight", value=lambda own: _short(own.text), is_link=True, is_fixed=True
        ),
        TableColumn("asked", "Asked for", value=lambda own: _short(own.trajectory.task.instruction)),
        TableColumn("state", "State", value="get_state_display", sort="state"),
        TableColumn("changed", "Changed", value="changed_at", sort="changed_at", kind="time"),
    )

    def load(self, rows: QuerySet[HindsightTask]) -> QuerySet[HindsightTask]:
        return rows.select_related("project", "trajectory__task")

    def row_url(self, row: HindsightTask) -> str:
        return reverse("hindsight:task-detail", args=[self.project.slug, row.pk])

    def row_label(self, row: HindsightTask) -> str:
        return f"Hindsight task of trajectory {row.trajectory.number}"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
