"""The table of inductions."""

from django.db.models import QuerySet
from django.db.models.fields.json import KeyTransform
from django.urls import reverse

from apps.core.jobs.job_queue import JobState
from apps.core.tables import DataTable, TableColumn, TableFilter
from apps.metrics.models import Induction

_HELD_OUT = KeyTransform("held_out", "result")


class InductionTable(DataTable[Induction]):
    """options: project."""

    name = "inductions"
    nouns = ("induction", "inductions")
    default_sort = "-induction"
    filters = (
        TableFilter("state", "State", [(str(each.value), str(each.label)) for each in JobState], "state"),
    )
    columns = (
        TableColumn(
            "induction",
            "Induction",
            value=lambda row: f"Induction {row.number}",
            sort="number",
            is_link=True,
            is_fixed=True,
        ),
        TableColumn(
            "campaign",
            "Comments of",
            value=lambda row: row.campaign.name if row.campaign else "All campaigns",
        ),
        TableColumn("state", "State", sort="state", kind="state"),
        TableColumn(
            "metrics",
            "Metrics",
            value="result.metrics",
            sort=KeyTransform("metrics", "result"),
            kind="number",
        ),
        TableColumn(
            "coverage",
            "Coverage",
            value="result.held_out.coverage",
            sort=KeyTransform("coverage", _HELD_OUT),
            kind="percent",
            help="On held-out points",
        ),
        TableColumn(
            "redundancy",
            "Redundancy",
            value="result.held_out.redundancy",
            sort=KeyTransform("redundancy", _HELD_OUT),
            kind="percent",
            help="On held-out points",
        ),
        TableColumn("created", "Created", value="created_at", sort="created_at", kind="time"),
    )

    def load(self, rows: QuerySet[Induction]) -> QuerySet[Induction]:
        return rows.select_related("campaign", "llm_connection", "created_by")

    def row_url(self, row: Induction) -> str:
        return reverse("metrics:induction-detail", args=[self.project.slug, row.pk])
