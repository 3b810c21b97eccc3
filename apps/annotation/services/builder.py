"""Which trajectories make items: alone, in pairs worth comparing, or in groups; always of one task."""

import hashlib
import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, groupby, islice, zip_longest
from typing import Literal

from django.db.models import QuerySet

from apps.accounts.models import Project
from apps.annotation.feedback_types import SIDES
from apps.annotation.models import Campaign
from apps.annotation.services.items import Added, ItemSpec, add_items
from apps.core.errors import DomainError
from apps.trajectories.models import Trajectory

Differ = Literal["outcome", "agent", "any"]
DIFFER: tuple[Differ, ...] = ("outcome", "agent", "any")
READ = (
    "project_id",
    "task__external_id",
    "content_hash",
    "success",
    "outcome_reward",
    "agent_name",
    "agent_version",
)
SUCCESS = {"success": True, "failure": False, "unknown": None}
MOST_PER_GROUP = 100  # trajectories of one outcome or agent looked at in a task: pairs grow with the square


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFilters:
    """Which trajectories take part; an empty one admits all."""

    agents: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    outcome: Literal["", "success", "failure", "unknown"] = ""
    max_tokens: int | None = None

    def apply(self, rows: QuerySet[Trajectory]) -> QuerySet[Trajectory]:
        if self.agents:
            rows = rows.filter(agent_name__in=self.agents)
        if self.tasks:
            rows = rows.filter(task__external_id__in=self.tasks)
        if self.outcome:
            rows = rows.filter(success=SUCCESS[self.outcome])
        return rows if self.max_tokens is None else rows.filter(token_count__lte=self.max_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """How items are made of a task's runs.

    size: runs in an item. per_task: items of a task. differ: what the runs of an item differ in, where there are
    several. seed: the same one picks the same items.
    """

    size: int = 2
    per_task: int = 1
    differ: Differ = "outcome"
    filters: ItemFilters = ItemFilters()
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ItemPreview:
    tasks: int
    items: int


def build_items(*, campaign: Campaign, choice: Choice) -> Added:
    """Add what is chosen. The same choice picks the same items again, which then are duplicates."""
    chosen = _choose(campaign.project, choice)
    return add_items(campaign=campaign, items=(ItemSpec(trajectories=runs) for runs in chosen))


def count_items(*, project: Project, choice: Choice) -> ItemPreview:
    """What `build_items` would choose, without adding anything."""
    tasks: set[int] = set()
    items = 0
    for first, *_ in _choose(project, choice):
        tasks.add(first.task_id)
        items += 1
    return ItemPreview(len(tasks), items)


Runs = tuple[Trajectory, ...]


def _choose(project: Project, choice: Choice) -> Iterator[Runs]:
    if choice.differ not in DIFFER:
        raise DomainError(
            f"Runs can differ by {', '.join(DIFFER)}; not by {choice.differ!r}.", pointer="/differ"
        )
    if choice.per_task < 1:
        raise DomainError("Ask for at least one item per task.", pointer="/per_task")
    if not 1 <= choice.size <= len(SIDES):
        raise DomainError(f"An item holds 1 to {len(SIDES)} runs.", pointer="/size")
    rows = choice.filters.apply(Trajectory.objects.filter(project=project)).order_by("task_id", "pk")
    rows = rows.select_related("task").only(*READ)
    for _, members in groupby(rows.iterator(chunk_size=2000), key=lambda row: row.task_id):
        yield from islice(_of_task(list(members), choice), choice.per_task)


def _of_task(rows: list[Trajectory], choice: Choice) -> Iterator[Runs]:
    """Items of one task, the first drawn first."""
    seed = choice.seed
    if choice.size == 1:
        return ((row,) for row in sorted(rows, key=lambda row: _rank(seed, row)))
    if choice.size == 2:
        pairs = _pairs_of_task(rows, choice.differ, seed)
        return iter(heapq.nsmallest(choice.per_task, pairs, key=lambda pair: _rank(seed, *pair)))
    return _groups_of_task(rows, choice)


def _groups_of_task(rows: list[Trajectory], choice: Choice) -> Iterator[Runs]:
    """Groups that share no run, each with as many different traits as there are."""
    traits = _by_trait(rows, choice.differ, choice.seed)
    turns = zip_longest(*traits)  # one of each trait, and again
    mixed = [row for turn in turns for row in turn if row is not None]
    for start in range(0, len(mixed) - choice.size + 1, choice.size):
        yield tuple(mixed[start : start + choice.size])


def _by_trait(rows: list[Trajectory], differ: Differ, seed: int) -> list[list[Trajectory]]:
    """The runs by what must differ, in drawn order; without those of whom it is not known."""
    groups: dict[object, list[Trajectory]] = {}
    for row in rows:
        groups.setdefault(_trait(row, differ), []).append(row)
    if differ != "any":
        groups.pop(None, None)
    return [
        heapq.nsmallest(MOST_PER_GROUP, group, key=lambda row: _rank(seed, row)) for group in groups.values()
    ]


def _pairs_of_task(rows: list[Trajectory], differ: Differ, seed: int) -> Iterator[Runs]:
    kept = _by_trait(rows, differ, seed)
    if differ == "any":
        yield from combinations([row for group in kept for row in group], 2)
        return
    for one, other in combinations(kept, 2):
        for left in one:
            yield from ((left, right) for right in other)


def _trait(row: Trajectory, differ: Differ) -> object:
    """What must differ within a pair; None where it is not known."""
    if differ == "agent":
        return (row.agent_name, row.agent_version) if row.agent_name else None
    if differ == "outcome":
        return row.success if row.success is not None else row.outcome_reward
    return None


def _rank(seed: int, *rows: Trajectory) -> str:
    """A number drawn by content, so that a choice stays the same when other trajectories arrive."""
    return hashlib.sha256(
        " ".join([str(seed), *sorted(row.content_hash for row in rows)]).encode()
    ).hexdigest()
