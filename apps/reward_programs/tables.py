"""The table of reward programs."""

from django.db.models import QuerySet
from django.urls import reverse

from apps.core.tables import DataTable, TableColumn, TableFilter
from apps.reward_programs.models import RewardProgramVersion


class RewardProgramTable(DataTable[RewardProgramVersion]):
    """options: project."""

    name = "reward-programs"
    nouns = ("version", "versions")
    default_sort = "-created"
    filters = (
        TableFilter(
            "origin",
            "Origin",
            [(str(each.value), str(each.label)) for each in RewardProgramVersion.Origin],
            "origin",
        ),
    )
    columns = (
        TableColumn("name", "Program", value="short_name", sort="name", is_link=True, is_fixed=True),
        TableColumn("status", "Status"),
        TableColumn("origin", "Origin", value="get_origin_display", sort="origin"),
        TableColumn("note", "Note", is_shown=False),
        TableColumn("hash", "Hash", value=lambda program: program.code_hash[:12], is_shown=False),
        TableColumn("created", "Created", value="created_at", sort="created_at", kind="time"),
    )

    def load(self, rows: QuerySet[RewardProgramVersion]) -> QuerySet[RewardProgramVersion]:
        return rows.select_related("project")

    def row_url(self, row: RewardProgramVersion) -> str:
        return reverse("reward_programs:program-detail", args=[self.project.slug, row.pk])

    def row_label(self, row: RewardProgramVersion) -> str:
        return row.short_name
