"""Trajectories of a filter grouped by task: how many, how often they succeed, what they reach."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Avg, Count, Max, Q, QuerySet
from django.urls import reverse

from apps.core.tables import MAX_TABLE_ROWS, DataTable, TableColumn
from apps.trajectories.models import Task, Trajectory


@dataclass(slots=True)
class TaskGroup:
    """known: trajectories whose outcome is known. task: set for the rows of a page."""

    pk: int
    count: int
    agents: int
    successes: int
    known: int
    reward: float | None
    mean_steps: float
    newest: datetime
    task: Task | None = None

    @property
    def success_rate(self) -> float | None:
        return self.successes / self.known if self.known else None


def group_by_task(rows: QuerySet[Trajectory]) -> list[TaskGroup]:
    """Of at most MAX_TABLE_ROWS tasks, those with most trajectories."""
    groups = (
        rows.order_by()
        .values("task_id")
        .annotate(
            count=Count("pk"),
            agents=Count("agent_name", distinct=True),
            successes=Count("pk", filter=Q(success=True)),
            known=Count("pk", filter=Q(success__isnull=False)),
            reward=Avg("outcome_reward"),
            mean_steps=Avg("step_count"),
            newest=Max("created_at"),
        )
    )
    names = ("task_id", "count", "agents", "successes", "known", "reward", "mean_steps", "newest")
    return [
        TaskGroup(*values)
        for values in groups.order_by("-count", "task_id").values_list(*names)[:MAX_TABLE_ROWS]
    ]


class TaskGroupTable(DataTable[TaskGroup]):
    """options: project."""

    name = "trajectories-by-task"
    nouns = ("task", "tasks")
    default_sort = "-count"
    columns = (
        TableColumn(
            "task",
            "Task",
            value="task.external_id",
            template="trajectories/cells/_group_task.html",
            is_fixed=True,
        ),
        TableColumn(
            "count",
            "Trajectories",
            sort="count",
            kind="number",
            template="trajectories/cells/_group_count.html",
        ),
        TableColumn("agents", "Agents", sort="agents", kind="number"),
        TableColumn(
            "success_rate",
            "Success rate",
            sort="success_rate",
            kind="percent",
            template="trajectories/cells/_success_rate.html",
            help="Share of the trajectories whose outcome is known",
        ),
        TableColumn("known", "Known outcomes", sort="known", kind="number", is_shown=False),
        TableColumn(
            "reward", "Mean reward", sort="reward", kind="number", template="trajectories/cells/_reward.html"
        ),
        TableColumn(
            "mean_steps",
            "Mean steps",
            sort="mean_steps",
            kind="number",
            template="trajectories/cells/_mean_steps.html",
        ),
        TableColumn("newest", "Newest", sort="newest", kind="time"),
    )

    def prepare(self, rows: list[Any]) -> list[Any]:
        tasks = Task.objects.defer("metadata", "reference").in_bulk([group.pk for group in rows])
        for group in rows:
            group.task = tasks[group.pk]
        return rows

    def row_url(self, row: TaskGroup) -> str:
        return reverse("trajectories:task-tree", args=[self.project.slug, row.pk])

    def row_label(self, row: TaskGroup) -> str:
        return f"task {row.task}"
