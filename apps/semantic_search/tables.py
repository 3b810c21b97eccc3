"""The results of a search by meaning as a table: they are selected as trajectories of the list are."""

from django.urls import reverse

from apps.core.tables import DataTable, TableAction, TableColumn
from apps.semantic_search.selectors import FoundPassage
from apps.trajectories.tables import trajectory_actions


class PassageTable(DataTable[FoundPassage]):
    """options: project."""

    name = "passages"
    nouns = ("result", "results")
    default_sort = "-similarity"
    columns = (
        TableColumn(
            "trajectory",
            "Trajectory",
            value="trajectory.task.external_id",
            template="semantic_search/cells/_trajectory.html",
            is_fixed=True,
        ),
        TableColumn(
            "steps",
            "Steps",
            value=lambda row: (
                f"{row.first_step} to {row.last_step}"
                if row.last_step != row.first_step
                else str(row.first_step)
            ),
        ),
        TableColumn("text", "Text", value="excerpt", template="semantic_search/cells/_excerpt.html"),
        TableColumn(
            "similarity",
            "Similarity",
            sort=lambda row: row.similarity,
            kind="number",
            template="semantic_search/cells/_similarity.html",
            help="Cosine of the embeddings",
        ),
    )

    @property
    def actions(self) -> tuple[TableAction, ...]:  # type: ignore[override]
        return trajectory_actions(self.project)

    def row_key(self, row: FoundPassage) -> str:
        return str(row.trajectory.pk)

    def row_url(self, row: FoundPassage) -> str:
        address = reverse("trajectories:trajectory-detail", args=[self.project.slug, row.trajectory.pk])
        return f"{address}#t{row.trajectory.pk}-s{row.first_step}"

    def row_label(self, row: FoundPassage) -> str:
        return f"trajectory {row.trajectory.pk}"
