"""The table of endpoints."""

from django.db.models import QuerySet
from django.urls import reverse

from apps.core.tables import DataTable, TableColumn, TableFilter
from apps.rewards.models import Endpoint


def _models(endpoint: Endpoint) -> str:
    components = endpoint.active.spec.get("components", []) if endpoint.active else []
    return ", ".join(str(component["model"]) for component in components if component.get("model"))


def _state(endpoint: Endpoint) -> str:
    return "off" if endpoint.switched_off else "live" if endpoint.active else "empty"


class EndpointTable(DataTable[Endpoint]):
    """options: project."""

    name = "endpoints"
    nouns = ("endpoint", "endpoints")
    default_sort = "name"
    search = ("name",)
    search_label = "Name"
    filters = (
        TableFilter(
            "off",
            "State",
            [("no", "Live"), ("yes", "Switched off")],
            lambda rows, value: rows.filter(switched_off=value == "yes"),
        ),
    )
    columns = (
        TableColumn("name", "Endpoint", sort="name", is_link=True, is_fixed=True),
        TableColumn("state", "State", value=_state, template="rewards/cells/_state.html"),
        TableColumn("revision", "Revision", value="active.number", sort="active__number", kind="number"),
        TableColumn("models", "Models", value=_models),
        TableColumn("sampled", "Sampled, %", value="sample_percent", sort="sample_share", is_shown=False),
        TableColumn(
            "deployed", "Deployed", value="active.created_at", sort="active__created_at", kind="time"
        ),
        TableColumn("created", "Created", value="created_at", sort="created_at", kind="time", is_shown=False),
    )

    def load(self, rows: QuerySet[Endpoint]) -> QuerySet[Endpoint]:
        return rows.select_related("active")

    def row_url(self, row: Endpoint) -> str:
        return reverse("rewards:endpoint-detail", args=[self.project.slug, row.name])

    def row_label(self, row: Endpoint) -> str:
        return row.name
