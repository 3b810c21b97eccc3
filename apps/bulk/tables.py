"""The table of bulk jobs."""

from typing import Any

from django.db.models import QuerySet
from django.urls import reverse

from apps.bulk.models import BulkJob
from apps.bulk.selectors import job_progresses
from apps.core.tables import DataTable, TableColumn, TableFilter


class BulkJobTable(DataTable[BulkJob]):
    """options: project."""

    name = "bulk-jobs"
    nouns = ("bulk job", "bulk jobs")
    default_sort = "-created"
    filters = (
        TableFilter(
            "state", "State", [(str(each.value), str(each.label)) for each in BulkJob.State], "state"
        ),
        TableFilter("work", "Work", [(str(each.value), str(each.label)) for each in BulkJob.Work], "work"),
    )
    columns = (
        TableColumn(
            "job",
            "Job",
            value=lambda job: f"{job.get_work_display()} {job.number}",
            sort="number",
            is_link=True,
            is_fixed=True,
        ),
        TableColumn("engine", "Engine", value=lambda job: str(job.engine)),
        TableColumn("state", "State", sort="state", kind="state"),
        TableColumn("trajectories", "Trajectories", value="item_count", sort="item_count", kind="number"),
        TableColumn("done", "Done", value="progress.done", kind="number"),
        TableColumn(
            "problems",
            "Problems",
            value="progress.problems",
            kind="number",
            help="Trajectories without a result",
        ),
        TableColumn(
            "speed", "Items/s", value="progress.per_second", kind="number", template="bulk/cells/_speed.html"
        ),
        TableColumn("created", "Created", value="created_at", sort="created_at", kind="time"),
        TableColumn("created_by", "Created by", sort="created_by__email", is_shown=False),
    )

    def load(self, rows: QuerySet[BulkJob]) -> QuerySet[BulkJob]:
        return rows.select_related("model__project", "judge", "induction", "created_by")

    def prepare(self, rows: list[Any]) -> list[Any]:
        progresses = job_progresses(rows)
        for job in rows:
            job.progress = progresses[job.pk]
        return rows

    def row_url(self, row: BulkJob) -> str:
        return reverse("bulk:bulk-job-detail", args=[self.project.slug, row.pk])
