"""The table of reward studies."""

from django.db.models import QuerySet
from django.urls import reverse

from apps.core.jobs.job_queue import JobState
from apps.core.tables import DataTable, TableColumn, TableFilter
from apps.reward_studies.models import RewardStudy


class RewardStudyTable(DataTable[RewardStudy]):
    """options: project."""

    name = "reward-studies"
    nouns = ("reward study", "reward studies")
    default_sort = "-number"
    filters = (
        TableFilter(
            "kind", "Kind", [(str(each.value), str(each.label)) for each in RewardStudy.Kind], "kind"
        ),
        TableFilter("state", "State", [(str(each.value), str(each.label)) for each in JobState], "state"),
    )
    columns = (
        TableColumn("number", "Study", value="title", sort="number", is_link=True, is_fixed=True),
        TableColumn("kind", "Kind", value="get_kind_display", sort="kind", is_shown=False),
        TableColumn("state", "State", sort="state", kind="state"),
        TableColumn(
            "endpoint", "Endpoint", value=lambda study: study.endpoint.name if study.endpoint else ""
        ),
        TableColumn("about", "Data"),
        TableColumn(
            "components", "Components", value=lambda study: len(study.spec["components"]), kind="number"
        ),
        TableColumn("created", "Created", value="created_at", sort="created_at", kind="time"),
    )

    def load(self, rows: QuerySet[RewardStudy]) -> QuerySet[RewardStudy]:
        return rows.select_related("endpoint")

    def row_url(self, row: RewardStudy) -> str:
        return reverse("reward_studies:study-detail", args=[self.project.slug, row.pk])

    def row_label(self, row: RewardStudy) -> str:
        return row.title
