"""The table of alerts."""

from django.db.models import QuerySet
from django.urls import reverse

from apps.accounts.models import Project
from apps.core.tables import DataTable, TableColumn, TableFilter
from apps.monitoring.models import Alert
from apps.rewards.selectors import endpoints_of


class AlertTable(DataTable[Alert]):
    """options: project."""

    name = "alerts"
    nouns = ("alert", "alerts")
    default_sort = "-raised"
    search = ("rule", "detail", "note")
    search_label = "Rule or text"
    columns = (
        TableColumn(
            "alert",
            "Alert",
            value="rule",
            sort="rule",
            template="monitoring/cells/_alert.html",
            is_fixed=True,
        ),
        TableColumn("endpoint", "Endpoint", value="endpoint.name", sort="endpoint__name"),
        TableColumn("revision", "Revision", value="version", sort="version", kind="number"),
        TableColumn("run", "Policy run", value="run", is_shown=False),
        TableColumn("value", "Value", sort="value", kind="number", is_shown=False),
        TableColumn("limit", "Limit", sort="limit", kind="number", is_shown=False),
        TableColumn("raised", "Raised", value="raised_at", sort="raised_at", kind="time"),
        TableColumn(
            "state",
            "State",
            value=lambda alert: "closed" if alert.closed_at else "open",
            sort="closed_at",
            template="monitoring/cells/_state.html",
        ),
        TableColumn("closed", "Closed", value="closed_at", sort="closed_at", kind="time", is_shown=False),
    )

    def __init__(self, request: object, rows: QuerySet[Alert], *, project: Project) -> None:
        names = endpoints_of(project).values_list("name", flat=True)
        self.filters = (
            TableFilter(
                "state",
                "State",
                [("open", "Open"), ("closed", "Closed")],
                lambda rows, value: rows.filter(closed_at__isnull=value == "open"),
            ),
            TableFilter("endpoint", "Endpoint", [(name, name) for name in names], "endpoint__name"),
        )
        super().__init__(request, rows, project=project)  # type: ignore[arg-type]

    def load(self, rows: QuerySet[Alert]) -> QuerySet[Alert]:
        return rows.select_related("endpoint", "closed_by")

    def row_url(self, row: Alert) -> str:
        return reverse("monitoring:alert-detail", args=[self.project.slug, row.pk])
