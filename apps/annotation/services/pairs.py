"""Which trajectories are worth comparing: same task, a different outcome or another agent."""

import hashlib
import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import Literal

from django.db.models import QuerySet

from apps.accounts.models import Project
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
MOST_PER_GROUP = 100  # trajectories of one outcome or agent looked at in a task: pairs grow with the square


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFilters:
    """Which trajectories take part; an empty one admits all."""

    agents: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    max_tokens: int | None = None

    def apply(self, rows: QuerySet[Trajectory]) -> QuerySet[Trajectory]:
        if self.agents:
            rows = rows.filter(agent_name__in=self.agents)
        if self.tasks:
            rows = rows.filter(task__external_id__in=self.tasks)
        return rows if self.max_tokens is None else rows.filter(token_count__lte=self.max_tokens)


@dataclass(frozen=True, slots=True)
class PairPreview:
    tasks: int
    pairs: int


def build_pairs(
    *,
    campaign: Campaign,
    per_task: int,
    differ: Differ = "outcome",
    filters: PairFilters | None = None,
    seed: int = 0,
) -> Added:
    """Add up to `per_task` pairs of each task. The same seed picks the same pairs again, which then are duplicates."""
    chosen = _choose(campaign.project, per_task, differ, filters or PairFilters(), seed)
    return add_items(campaign=campaign, items=(ItemSpec(trajectories=pair) for pair in chosen))


def count_pairs(
    *,
    project: Project,
    per_task: int,
    differ: Differ = "outcome",
    filters: PairFilters | None = None,
    seed: int = 0,
) -> PairPreview:
    """What `build_pairs` would choose, without adding anything."""
    tasks: set[int] = set()
    pairs = 0
    for left, _ in _choose(project, per_task, differ, filters or PairFilters(), seed):
        tasks.add(left.task_id)
        pairs += 1
    return PairPreview(len(tasks), pairs)


Pair = tuple[Trajectory, Trajectory]


def _choose(
    project: Project, per_task: int, differ: Differ, filters: PairFilters, seed: int
) -> Iterator[Pair]:
    if differ not in DIFFER:
        raise DomainError(f"Pairs can differ by {', '.join(DIFFER)}; not by {differ!r}.", pointer="/differ")
    if per_task < 1:
        raise DomainError("Ask for at least one pair per task.", pointer="/per_task")
    rows = filters.apply(Trajectory.objects.filter(project=project)).order_by("task_id", "pk")
    rows = rows.select_related("task").only(*READ)
    for _, members in groupby(rows.iterator(chunk_size=2000), key=lambda row: row.task_id):
        pairs = _pairs_of_task(list(members), differ, seed)
        yield from heapq.nsmallest(per_task, pairs, key=lambda pair: _rank(seed, *pair))


def _pairs_of_task(rows: list[Trajectory], differ: Differ, seed: int) -> Iterator[Pair]:
    groups: dict[object, list[Trajectory]] = {}
    for row in rows:
        groups.setdefault(_trait(row, differ), []).append(row)
    if differ != "any":
        groups.pop(None, None)
    kept = [
        heapq.nsmallest(MOST_PER_GROUP, group, key=lambda row: _rank(seed, row)) for group in groups.values()
    ]
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
