"""The table of LLM connections."""

from typing import Any

from django.db.models import QuerySet
from django.urls import reverse

from apps.core.tables import DataTable, TableColumn
from apps.llm.models import LLMConnection
from apps.llm.selectors import list_llm_connections


def _key_state(row: LLMConnection) -> str:
    if row.is_key_lost:
        return "lost"
    return "encrypted" if row.key else "none"


class LLMConnectionTable(DataTable[LLMConnection]):
    """options: project. rows: of `list_llm_connections`, with the month's cost and the number of cached completions."""

    name = "llm-connections"
    nouns = ("LLM connection", "LLM connections")
    default_sort = "name"
    has_file = False
    search = ("name", "model", "base_url")
    search_label = "Name, model or address"
    columns = (
        TableColumn("name", "Name", sort="name", is_link=True, is_fixed=True),
        TableColumn("model", "Model", sort="model", template="llm/cells/_model.html"),
        TableColumn("key", "API key", value=_key_state, template="llm/cells/_key.html"),
        TableColumn(
            "cost",
            "Cost this month",
            value="spent",
            sort="spent",
            kind="number",
            template="llm/cells/_cost.html",
        ),
        TableColumn(
            "cached",
            "Cached completions",
            value="cached_count",
            sort="cached_count",
            kind="number",
            help="A question that was answered before is not sent again",
        ),
        TableColumn(
            "actions", "Actions", value=lambda row: "", template="llm/cells/_actions.html", is_fixed=True
        ),
    )

    def load(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        return list_llm_connections(self.project)

    def row_url(self, row: LLMConnection) -> str:
        return reverse("llm:connection-edit", args=[self.project.slug, row.pk])

    def row_label(self, row: LLMConnection) -> str:
        return row.name
