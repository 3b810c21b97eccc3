"""Putting trajectories before annotators."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from django.db import transaction

from apps.annotation.kinds import KINDS
from apps.annotation.models import Campaign, Item, ItemTrajectory
from apps.core.errors import DomainError
from apps.trajectories.models import Trajectory

CHUNK = 1000
LONGEST_NAME = 190


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSpec:
    """name: names the comparison; without it, equal contents in any order are one item."""

    trajectories: Sequence[Trajectory]
    priority: float = 0
    name: str | None = None

    @property
    def key(self) -> str:
        first = self.trajectories[0]
        return item_key(self.name, first.task.external_id, [t.content_hash for t in self.trajectories])


@dataclass(frozen=True, slots=True)
class Added:
    created: int
    duplicates: int
    items: tuple[int, ...] = ()  # ids of the created ones


def item_key(name: str | None, task: str, hashes: Sequence[str]) -> str:
    """A comparison's key: the name it was given, or its task and contents in any order."""
    if name is not None:
        return f"name:{name}"
    return hashlib.sha256("\n".join([task, *sorted(hashes)]).encode()).hexdigest()


def add_items(*, campaign: Campaign, items: Iterable[ItemSpec]) -> Added:
    """Add items, each once by its key. All or nothing; the stream is read in chunks."""
    created: list[int] = []
    duplicates = 0
    stream = iter(items)
    with transaction.atomic():
        # One writer per campaign, so that looking up keys and inserting them is one step.
        campaign = Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
        while chunk := list(islice(stream, CHUNK)):
            new = _add_chunk(campaign, chunk)
            created += new
            duplicates += len(chunk) - len(new)
    return Added(len(created), duplicates, tuple(created))


def _add_chunk(campaign: Campaign, chunk: list[ItemSpec]) -> list[int]:
    specs: dict[str, ItemSpec] = {}
    for spec in chunk:
        _check(campaign, spec)
        specs.setdefault(spec.key, spec)
    known = set(Item.objects.filter(campaign=campaign, key__in=specs).values_list("key", flat=True))
    fresh = [(key, spec) for key, spec in specs.items() if key not in known]
    rows = Item.objects.bulk_create(
        Item(
            campaign=campaign,
            task_id=spec.trajectories[0].task_id,
            key=key,
            priority=spec.priority,
            wanted=campaign.overlap,
        )
        for key, spec in fresh
    )
    ItemTrajectory.objects.bulk_create(
        ItemTrajectory(item=row, trajectory=trajectory, position=position)
        for row, (_, spec) in zip(rows, fresh, strict=True)
        for position, trajectory in enumerate(spec.trajectories)
    )
    return [row.pk for row in rows]


def _check(campaign: Campaign, spec: ItemSpec) -> None:
    places = spec.trajectories
    for name in campaign.kinds:
        kind = KINDS[name]
        if not kind.fewest <= len(places) <= kind.most:
            wanted = str(kind.fewest) if kind.fewest == kind.most else f"{kind.fewest} to {kind.most}"
            raise DomainError(
                f"{kind.label} needs {wanted} trajectories in an item; this one has {len(places)}."
            )
    if len({t.content_hash for t in places}) != len(places):
        raise DomainError("An item holds a trajectory twice; there is nothing to compare.")
    if any(t.task_id != places[0].task_id for t in places):
        raise DomainError("The trajectories of an item are of different tasks; compare runs of one task.")
    if any(t.project_id != campaign.project_id for t in places):
        raise DomainError("A trajectory of this item belongs to another project.", status=404)
    if spec.name is not None and not 0 < len(spec.name) <= LONGEST_NAME:
        raise DomainError(f"An item's name has 1 to {LONGEST_NAME} characters.")
