"""The table of connectors."""

from typing import Any

from django.db.models import QuerySet
from django.urls import reverse

from apps.connectors.models import Connector
from apps.connectors.selectors import list_connectors
from apps.connectors.sources import KINDS
from apps.core.tables import DataTable, TableColumn


def _source(connector: Connector) -> str:
    kind = KINDS.get(connector.kind)
    return kind.title if kind else connector.kind


def _schedule(connector: Connector) -> str:
    if connector.is_paused:
        return "paused"
    return f"every {connector.every_minutes} min" if connector.every_minutes else "on demand"


class ConnectorTable(DataTable[Connector]):
    """options: project."""

    name = "connectors"
    nouns = ("connector", "connectors")
    default_sort = "name"
    search = ("name", "kind", "address")
    search_label = "Name or source"
    columns = (
        TableColumn("name", "Name", sort="name", template="connectors/cells/_name.html", is_fixed=True),
        TableColumn("source", "Source", value=_source, sort="kind", template="connectors/cells/_source.html"),
        TableColumn("last_state", "Last run", sort="last_run_at", template="connectors/cells/_last_run.html"),
        TableColumn("schedule", "Schedule", value=_schedule, template="connectors/cells/_schedule.html"),
        TableColumn(
            "trajectories",
            "Trajectories",
            value="created_count",
            kind="number",
            help="Trajectories that its runs created",
        ),
    )

    def load(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        return list_connectors(self.project)

    def row_url(self, row: Connector) -> str:
        return reverse("connectors:connector-detail", args=[self.project.slug, row.pk])

    def row_label(self, row: Connector) -> str:
        return row.name
