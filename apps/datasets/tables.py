"""Tables of dataset versions and exports."""

from typing import Any

from django.db.models import QuerySet
from django.db.models.fields.json import KeyTransform
from django.urls import reverse

from apps.core.jobs.job_queue import JobState
from apps.core.tables import DataTable, TableColumn, TableFilter
from apps.datasets.models import DatasetVersion, Export
from apps.datasets.splits import SPLITS

STATES = [(str(state.value), str(state.label)) for state in JobState]


def _state(row: DatasetVersion) -> str:
    return "withdrawn" if row.withdrawn_at else "frozen" if row.state == JobState.SUCCEEDED else row.state


def _count(split: str) -> Any:
    return lambda row: row.splits.get(split)


class DatasetVersionTable(DataTable[DatasetVersion]):
    """options: project."""

    name = "dataset-versions"
    nouns = ("dataset version", "dataset versions")
    default_sort = "-created"
    search = ("name", "content_hash", "created_by__email")
    search_label = "Name, hash or creator"
    filters = (TableFilter("state", "State", STATES, "state"),)
    columns = (
        TableColumn("number", "No.", sort="number", kind="number", is_shown=False),
        TableColumn("dataset", "Dataset", value="short_name", sort="name", is_link=True, is_fixed=True),
        TableColumn("state", "State", value=_state, sort="state", template="datasets/cells/_state.html"),
        TableColumn(
            "usable_pairs",
            "Usable pairs",
            sort="usable_pairs",
            kind="number",
            help="Overall comparisons of two different trajectories",
        ),
        *(
            TableColumn(
                split,
                split.capitalize(),
                value=_count(split),
                sort=KeyTransform(split, "splits"),
                kind="number",
                help=f"Records of the split {split}",
            )
            for split in SPLITS
        ),
        TableColumn(
            "annotators", "Annotators", value=lambda row: len(row.annotators), kind="number", is_shown=False
        ),
        TableColumn("hash", "Hash", value="content_hash", template="datasets/cells/_hash.html"),
        TableColumn("created", "Created", value="created_at", sort="created_at", kind="time"),
        TableColumn("created_by", "Created by", sort="created_by__email"),
    )

    def load(self, rows: QuerySet[DatasetVersion]) -> QuerySet[DatasetVersion]:
        return rows.select_related("created_by")

    def row_url(self, row: DatasetVersion) -> str:
        return reverse("datasets:dataset-version-detail", args=[self.project.slug, row.pk])

    def row_label(self, row: DatasetVersion) -> str:
        return row.short_name


class ExportTable(DataTable[Export]):
    """options: project."""

    name = "exports"
    nouns = ("export", "exports")
    default_sort = "-created"
    filters = (TableFilter("state", "State", STATES, "state"),)
    columns = (
        TableColumn("number", "No.", sort="number", kind="number", is_shown=False),
        TableColumn(
            "contents", "Contents", value="about", template="datasets/cells/_contents.html", is_fixed=True
        ),
        TableColumn("format", "Format", sort="format"),
        TableColumn("state", "State", sort="state", template="datasets/cells/_export_state.html"),
        TableColumn("lines", "Lines", sort="lines", kind="number", template="datasets/cells/_lines.html"),
        TableColumn("size", "Size", sort="size", kind="number", template="datasets/cells/_size.html"),
        TableColumn("file", "File", value=lambda row: row.sha256, template="datasets/cells/_file.html"),
        TableColumn("created", "Created", value="created_at", sort="created_at", kind="time"),
        TableColumn("created_by", "Created by", sort="created_by__email", is_shown=False),
    )

    def load(self, rows: QuerySet[Export]) -> QuerySet[Export]:
        return rows.select_related("project", "dataset_version__project", "created_by")
