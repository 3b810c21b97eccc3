"""`client.items`: trajectories to be annotated."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from touchstone_client.api_objects import ApiObject, ObjectReader, api_object
from touchstone_client.calls import (
    Calls,
    DriverT,
    Flow,
    Request,
    flow_operation,
    given,
    list_operation,
    operation,
    send,
)
from touchstone_client.filters import FilterValue, filter_query
from touchstone_client.listings import Pages
from touchstone_client.progress import Progress, progress_bar
from touchstone_client.resources.campaigns import Campaign
from touchstone_client.values import plain

_BATCH = 500  # items of a request; the server takes 1,000


@api_object
class Item(ApiObject):
    """One thing to judge. trajectories: ids. claimed, completed: annotations of `overlap`."""

    id: int
    campaign: str = ""
    task: str = ""
    trajectories: tuple[str, ...] = ()
    purpose: str = ""
    in_pilot: bool = False
    priority: float = 0.0
    acquisition_score: float | None = None
    overlap: int = 1
    claimed: int = 0
    completed: int = 0
    created: datetime | None = None


@api_object
class BuiltItems(ApiObject):
    created: int
    duplicates: int


@api_object
class AddedItems(ApiObject):
    """items: ids of the new ones. duplicates: items that were in the campaign already."""

    campaign: str = ""
    created: int
    duplicates: int
    items: tuple[int, ...] = ()


def _assigned_count(reply: Any) -> int:
    return int(reply["assigned"])


class Items(Calls[DriverT]):
    @flow_operation
    def add(
        self,
        campaign: str | Campaign,
        items: Iterable[Mapping[str, Any] | Sequence[Any]],
        *,
        progress: Progress = False,
    ) -> Flow[AddedItems]:
        """Put trajectories before annotators, several in one item to be compared. Scope `ingest`.

        items: each a list of stored trajectories, [id, id], or {"trajectories": [ITEM, ...], "task"?, "priority"?,
        "name"?}, ITEM as of the reward API. Items of higher priority come first in campaigns ordered by priority.
        """
        total, batch = AddedItems(campaign=str(campaign), created=0, duplicates=0), list[dict[str, Any]]()
        with progress_bar(progress, "items", unit=" items") as show:
            for item in items:
                batch.append(_body(item))
                if len(batch) == _BATCH:
                    total, batch = _added(total, (yield from send(self._batch(str(campaign), batch)))), []
                    show(total.created + total.duplicates, None)
            if batch:
                total = _added(total, (yield from send(self._batch(str(campaign), batch))))
                show(total.created + total.duplicates, None)
        return total

    @operation
    def build(
        self,
        campaign: str | Campaign,
        *,
        size: int | None = None,
        per_task: int | None = None,
        differ: str | None = None,
        agents: Sequence[str] | None = None,
        outcome: str | None = None,
        max_tokens: int | None = None,
        filter: FilterValue | None = None,
        partner: str | None = None,
        limit: int | None = None,
        seed: int | None = None,
    ) -> Request[BuiltItems]:
        """Have the server choose items among the stored trajectories, of one task each. Scope `admin`.

        size: trajectories of an item. per_task: items of a task. differ: pairs that differ in their `outcome`, `agent`
        or `any`. agents, outcome, max_tokens: only trajectories of these agents, with this outcome (success, failure,
        unknown), up to this length. filter: other conditions, as `client.trajectories.list` takes them. partner:
        whether all trajectories of an item match (`matching`), or one with any others of its task (`any`). limit: of
        all items, drawn from all tasks.
        """
        body = given(
            size=size,
            per_task=per_task,
            differ=differ,
            agents=None if agents is None else list(agents),
            outcome=outcome,
            max_tokens=max_tokens,
            filter=filter_query(filter),
            partner=partner,
            limit=limit,
            seed=seed,
        )
        path = self._path("campaigns", campaign, "items")
        return Request("POST", path, ObjectReader(BuiltItems), json=body)

    @operation
    def assign(
        self, campaign: str | Campaign, items: Sequence[int | Item], member: str, *, only: bool = False
    ) -> Request[int]:
        """Reserve items for a member, by address, who gets them first; how many were reserved. Scope `admin`.

        only: no one else gets them.
        """
        ids = [each.id if isinstance(each, Item) else each for each in items]
        body = {"member": member, "items": ids, "only": only}
        return Request("POST", self._path("campaigns", campaign, "assignments"), _assigned_count, json=body)

    @operation
    def get(self, item: int | Item) -> Request[Item]:
        """With its progress. Scope `ingest`, `feedback:read` or `admin`."""
        number = item.id if isinstance(item, Item) else item
        return Request("GET", self._path("items", number), ObjectReader(Item))

    @list_operation
    def list(
        self, campaign: str | Campaign, *, purpose: str | None = None, page_size: int | None = None
    ) -> Pages[Item]:
        """Of a campaign. purpose: work, gold, practice, ... Scope `ingest`, `feedback:read` or `admin`."""
        path = self._path("campaigns", campaign, "items")
        return Pages(path, ObjectReader(Item), {"purpose": purpose}, page_size)

    def _batch(self, campaign: str, items: Sequence[dict[str, Any]]) -> Request[AddedItems]:
        body = {"campaign": campaign, "items": [*items]}
        return Request("POST", self._path("items"), ObjectReader(AddedItems), json=body)


def _body(item: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    if isinstance(item, Mapping):
        found: dict[str, Any] = plain(item)
        return found
    stored = [plain(each) if isinstance(each, Mapping) else {"trajectory_id": str(each)} for each in item]
    return {"trajectories": stored}


def _added(total: AddedItems, result: AddedItems) -> AddedItems:
    return AddedItems(
        campaign=total.campaign,
        created=total.created + result.created,
        duplicates=total.duplicates + result.duplicates,
        items=total.items + result.items,
        extra=total.extra | result.extra,
    )
