"""The tables of webhooks and of their deliveries."""

from typing import Any

from django.db.models import QuerySet

from apps.core.tables import DataTable, TableColumn, TableFilter
from apps.webhooks.models import Delivery, Webhook, WebhookEvent


class WebhookTable(DataTable[Webhook]):
    """options: project."""

    name = "webhooks"
    nouns = ("webhook", "webhooks")
    default_sort = "-created"
    has_file = False
    columns = (
        TableColumn(
            "url",
            "URL",
            value="shown_url",
            sort="url",
            template="webhooks/cells/_webhook.html",
            is_fixed=True,
        ),
        TableColumn("events", "Events", template="webhooks/cells/_events.html"),
        TableColumn("created", "Created", value="created_at", sort="created_at", kind="time"),
        TableColumn("created_by", "Created by", sort="created_by__email", is_shown=False),
        TableColumn(
            "actions", "Actions", value=lambda row: "", template="webhooks/cells/_actions.html", is_fixed=True
        ),
    )

    def load(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.select_related("created_by")

    def row_label(self, row: Webhook) -> str:
        return row.shown_url


def _in_state(rows: QuerySet[Delivery], value: str) -> QuerySet[Delivery]:
    if value == "delivered":
        return rows.filter(delivered_at__isnull=False)
    return rows.filter(delivered_at=None, next_at__isnull=value == "failed")


class DeliveryTable(DataTable[Delivery]):
    """options: project."""

    name = "webhook-deliveries"
    nouns = ("delivery", "deliveries")
    default_sort = "-created"
    search = ("type", "answer")
    search_label = "Event or answer"
    filters = (
        TableFilter("event", "Event", WebhookEvent.choices, "type"),
        TableFilter(
            "state",
            "State",
            [("delivered", "Delivered"), ("failed", "Failed"), ("waiting", "Waiting")],
            _in_state,
        ),
    )
    columns = (
        TableColumn("created", "Time", value="created_at", sort="created_at", kind="time"),
        TableColumn("event", "Event", value="type", sort="type", is_fixed=True),
        TableColumn("url", "URL", value="webhook.shown_url", sort="webhook__url"),
        TableColumn("state", "State", template="webhooks/cells/_delivery_state.html"),
        TableColumn("attempts", "Attempts", kind="number", sort="attempts"),
        TableColumn("answer", "Last answer"),
        TableColumn("next", "Next attempt", value="next_at", sort="next_at", kind="time", is_shown=False),
        TableColumn(
            "actions",
            "Actions",
            value=lambda row: "",
            template="webhooks/cells/_delivery_again.html",
            is_fixed=True,
        ),
    )

    def load(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.select_related("webhook")

    def row_label(self, row: Delivery) -> str:
        return f"{row.type} to {row.webhook.shown_url}"
