"""The table of lists of subgoals."""

from django.db.models import QuerySet
from django.urls import reverse

from apps.core.tables import DataTable, TableColumn, TableFilter
from apps.subgoals.models import TaskSubgoals


class SubgoalTable(DataTable[TaskSubgoals]):
    """options: project."""

    name = "subgoals"
    nouns = ("task", "tasks")
    default_sort = "-changed"
    filters = (
        TableFilter(
            "state", "State", [(str(each.value), str(each.label)) for each in TaskSubgoals.State], "state"
        ),
    )
    columns = (
        TableColumn("task", "Task", value="task", sort="task__external_id", is_link=True, is_fixed=True),
        TableColumn("state", "State", value="get_state_display", sort="state"),
        TableColumn("subgoals", "Subgoals", value=lambda own: len(own.subgoals), kind="number"),
        TableColumn("changed", "Changed", value="changed_at", sort="changed_at", kind="time"),
    )

    def load(self, rows: QuerySet[TaskSubgoals]) -> QuerySet[TaskSubgoals]:
        return rows.select_related("project", "task")

    def row_url(self, row: TaskSubgoals) -> str:
        return reverse("subgoals:subgoals-detail", args=[self.project.slug, row.pk])

    def row_label(self, row: TaskSubgoals) -> str:
        return f"Subgoals of {row.task}"
