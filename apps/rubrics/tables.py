"""The table of rubrics."""

from django.db.models import QuerySet
from django.urls import reverse

from apps.core.tables import DataTable, TableColumn
from apps.rubrics.models import Rubric


class RubricTable(DataTable[Rubric]):
    """options: project."""

    name = "rubrics"
    nouns = ("rubric", "rubrics")
    default_sort = "name"
    search = ("name", "about")
    search_label = "Name or description"
    columns = (
        TableColumn("name", "Rubric", sort="name", template="rubrics/cells/_name.html", is_fixed=True),
        TableColumn(
            "criteria",
            "Criteria",
            value=lambda rubric: ", ".join(criterion.name for criterion in rubric.criteria.all()),
        ),
        TableColumn("version", "Version", sort="version", kind="number"),
        TableColumn("created", "Created", value="created_at", sort="created_at", kind="time"),
    )

    def load(self, rows: QuerySet[Rubric]) -> QuerySet[Rubric]:
        return rows.prefetch_related("criteria")

    def row_url(self, row: Rubric) -> str:
        return reverse("rubrics:rubric-detail", args=[self.project.slug, row.pk])

    def row_label(self, row: Rubric) -> str:
        return row.name
