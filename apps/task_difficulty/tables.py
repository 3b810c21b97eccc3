"""The table of tasks by difficulty."""

from django.urls import reverse

from apps.core.tables import DataTable, TableColumn
from apps.task_difficulty.selectors import TaskEstimate


class TaskDifficultyTable(DataTable[TaskEstimate]):
    """options: project."""

    name = "task-difficulty"
    nouns = ("task", "tasks")
    default_sort = "-learnability"
    columns = (
        TableColumn(
            "task",
            "Task",
            value="task.external_id",
            template="task_difficulty/cells/_task.html",
            is_fixed=True,
        ),
        TableColumn(
            "expected",
            "Expected success",
            value="estimate.success",
            sort=lambda row: row.estimate.success,
            kind="percent",
            template="task_difficulty/cells/_expected.html",
            help="From the outcomes of the task and of tasks with similar texts, with the interval of 90 %",
        ),
        TableColumn(
            "learnability",
            "Learnability",
            value="estimate.learnability",
            sort=lambda row: row.estimate.learnability,
            kind="number",
            template="task_difficulty/cells/_learnability.html",
            help="The expected variance of an outcome, at most 0.25: highest where an agent succeeds half of the time",
        ),
        TableColumn(
            "success_rate",
            "Success rate",
            value="success_rate",
            sort="success_rate",
            kind="percent",
            template="task_difficulty/cells/_success_rate.html",
            help="Of the outcomes that are known",
        ),
        TableColumn("failures", "Failures", sort="failures", kind="number"),
    )

    def row_url(self, row: TaskEstimate) -> str:
        return reverse("trajectories:task-tree", args=[self.project.slug, row.pk])

    def row_label(self, row: TaskEstimate) -> str:
        return f"task {row.task}"
