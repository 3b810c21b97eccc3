"""Tables of campaigns and their items."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.db.models import F, QuerySet
from django.urls import reverse

from apps.annotation.feedback_types import FEEDBACK_TYPES
from apps.annotation.models import Campaign, Item
from apps.annotation.selectors import adjudicated_items, campaign_progresses, last_annotations
from apps.core.tables import DataTable, TableColumn, TableFilter


def describe_feedback_types(campaign: Campaign) -> str:
    """Labels of the campaign's feedback types."""
    return ", ".join(FEEDBACK_TYPES[name].label.lower() for name in campaign.feedback_types)


class CampaignTable(DataTable[Campaign]):
    name = "campaigns"
    nouns = ("campaign", "campaigns")
    default_sort = "-created"
    search = ("name", "created_by__email", "created_by__name")
    search_label = "Name or creator"
    filters = (
        TableFilter(
            "state",
            "State",
            [
                (str(state.value), str(state.label))
                for state in Campaign.State
                if state != Campaign.State.ARCHIVED
            ],
            "state",
        ),
        TableFilter(
            "feedback",
            "Feedback type",
            [(name, kind.label) for name, kind in FEEDBACK_TYPES.items()],
            lambda rows, value: rows.filter(feedback_types__contains=[value]),
        ),
    )
    columns: Sequence[TableColumn] = (
        TableColumn("name", "Campaign", sort="name", is_link=True, is_fixed=True),
        TableColumn("state", "State", sort="state", template="annotation/cells/_state.html"),
        TableColumn("feedback", "Feedback types", value=describe_feedback_types),
        TableColumn("items", "Items", value="progress.items", kind="number"),
        TableColumn(
            "annotations",
            "Annotations",
            value="progress.completed",
            kind="number",
            template="annotation/cells/_progress.html",
        ),
        TableColumn("needed", "Annotations needed", value="progress.required", kind="number", is_shown=False),
        TableColumn("more", "Beyond overlap", value="progress.more", kind="number", is_shown=False),
        TableColumn("overlap", "Overlap", sort="overlap", kind="number", is_shown=False),
        TableColumn("deadline", "Deadline", sort="deadline", kind="time"),
        TableColumn("last_annotation", "Last annotation", kind="time"),
        TableColumn("created", "Created", value="created_at", sort="created_at", kind="time"),
        TableColumn("created_by", "Created by", sort="created_by__email", is_shown=False),
    )

    def load(self, rows: QuerySet[Campaign]) -> QuerySet[Campaign]:
        return rows.select_related("created_by")

    def prepare(self, rows: list[Any]) -> list[Any]:
        progresses, times = campaign_progresses(rows), last_annotations(rows)
        for row in rows:
            row.progress, row.last_annotation = progresses[row.pk], times.get(row.pk)
        return rows

    def row_url(self, row: Campaign) -> str:
        return reverse("annotation:campaign-detail", args=[self.project.slug, row.pk])

    def row_label(self, row: Campaign) -> str:
        return row.name


ITEM_STATUSES = {
    "complete": "Complete",
    "partly": "Partly annotated",
    "assigned": "Assigned",
    "waiting": "Not started",
}


def item_status(item: Item) -> str:
    """A key of ITEM_STATUSES; the purpose of an item that is no work."""
    if item.purpose != Item.Purpose.WORK:
        return item.purpose
    if item.completed_count >= item.overlap:
        return "complete"
    if item.completed_count:
        return "partly"
    return "assigned" if item.claimed_count else "waiting"


def _with_status(rows: QuerySet[Item], status: str) -> QuerySet[Item]:
    rows = rows.filter(purpose=Item.Purpose.WORK)
    if status == "complete":
        return rows.filter(completed_count__gte=F("overlap"))
    rows = rows.filter(completed_count__lt=F("overlap"))
    if status == "partly":
        return rows.filter(completed_count__gt=0)
    rows = rows.filter(completed_count=0)
    return rows.filter(claimed_count__gt=0) if status == "assigned" else rows.filter(claimed_count=0)


class ItemTable(DataTable[Item]):
    """options: project. rows: a queryset, or items in an order of their own."""

    name = "items"
    nouns = ("item", "items")
    default_sort = "-created"
    columns: Sequence[TableColumn] = (
        TableColumn("task", "Task", value="task.external_id", is_link=True, is_fixed=True),
        TableColumn(
            "instruction",
            "Instruction",
            value="task.instruction",
            template="annotation/cells/_instruction.html",
        ),
        TableColumn("status", "Status", value=item_status, template="annotation/cells/_item_status.html"),
        TableColumn(
            "annotations", "Annotations", value="completed_count", sort="completed_count", kind="number"
        ),
        TableColumn("overlap", "Overlap", sort="overlap", kind="number"),
        TableColumn(
            "adjudicated",
            "Adjudicated",
            value="is_adjudicated",
            template="annotation/cells/_adjudicated.html",
        ),
        TableColumn("priority", "Priority", sort="priority", kind="number", is_shown=False),
        TableColumn("created", "Added", value="created_at", sort="pk", is_indexed=True, kind="time"),
    )

    def load(self, rows: QuerySet[Item]) -> QuerySet[Item]:
        return rows.select_related("task")

    def prepare(self, rows: list[Any]) -> list[Any]:
        decided = adjudicated_items([item.pk for item in rows])
        for item in rows:
            item.is_adjudicated = item.pk in decided
            item.status_label = ITEM_STATUSES.get(item_status(item), "")
        return rows

    def row_url(self, row: Item) -> str:
        return reverse("annotation:item-detail", args=[self.project.slug, row.pk])

    def row_label(self, row: Item) -> str:
        return f"item of task {row.task.external_id}"


class CampaignItemTable(ItemTable):
    """All items of a campaign."""

    filters = (
        TableFilter("status", "Status", list(ITEM_STATUSES.items()), _with_status),
        TableFilter(
            "kept_for", "Purpose", [(str(each.value), str(each.label)) for each in Item.Purpose], "purpose"
        ),
    )
    search = ("task__external_id",)
    search_label = "Task ID"

    @property
    def clear_url(self) -> str:
        return "?all=1"


class DisputedItemTable(ItemTable):
    """The most disputed first. rows: in memory."""

    default_sort = ""
    columns: Sequence[TableColumn] = tuple(replace(column, sort="") for column in ItemTable.columns)
