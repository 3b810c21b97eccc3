"""Training batches: examples, shuffled, filled up to limits, shared out among ranks and cut into micro batches."""

import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from workers.models import Backbone
from workers.objectives import Examples
from workers.schema.recipe import Recipe


@dataclass(frozen=True, slots=True)
class ExampleGroup:
    """Indices of examples that stay together, and their cost (`Backbone.cost`)."""

    examples: tuple[int, ...]
    cost: int


TrainingBatch = list[ExampleGroup]
# Up to so many groups and examples a batch is shared out by the work of whole shares, which counts what groups have in
# common. That looks at every share again for every group: above, the work of each group alone is added up.
_GROUPS_BY_SHARE, _EXAMPLES_BY_SHARE = 64, 256
_CANDIDATES = 2  # ranks with the least work, of which a group goes to the one where it adds least


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What one optimiser step takes at most, in all ranks together. pairs: examples. tokens: their cost.

    tasks: a group has at most `pairs / tasks` examples, so that a batch mixes about that many tasks or more; 1 keeps a
    task's examples together up to a whole batch.
    """

    pairs: int
    tokens: int
    tasks: int = 1

    @classmethod
    def from_recipe(cls, recipe: Recipe, world_size: int = 1) -> "BatchLimits":
        """`batch_pairs` and `batch_tokens` are of all ranks together, or of each with `batch_per_process`."""
        times = world_size if recipe.batch_per_process else 1
        return cls(recipe.batch_pairs * times, recipe.batch_tokens * times, recipe.batch_tasks)

    @classmethod
    def from_checkpoint(cls, state: dict[str, Any], recipe: Recipe) -> "BatchLimits":
        """Those that the training began with. Checkpoints of earlier versions name none: they kept tasks together."""
        saved = state.get("batches")
        return cls(**saved) if saved else cls(recipe.batch_pairs, recipe.batch_tokens)

    def to_dict(self) -> dict[str, int]:
        return asdict(self)

    @property
    def group_size(self) -> int:
        return max(1, self.pairs // self.tasks)


def make_groups(examples: Examples, backbone: Backbone, limits: BatchLimits) -> list[ExampleGroup]:
    """Examples of one task stay together where the backbone computes shared beginnings of trajectories once."""
    if not backbone.shares:
        found = [[index] for index in range(len(examples))]
    else:
        tasks: dict[str, list[int]] = {}
        for index, example in enumerate(examples.items):
            tasks.setdefault(example.task, []).append(index)
        size = limits.group_size
        found = [task[start : start + size] for task in tasks.values() for start in range(0, len(task), size)]
    return [
        group for indices in found for group in _halve_to_budget(indices, examples, backbone, limits.tokens)
    ]


def epoch_batches(
    groups: Sequence[ExampleGroup], limits: BatchLimits, *, seed: int, epoch: int
) -> list[TrainingBatch]:
    """Every group once; the same for the same seed and epoch, whatever the number of ranks."""
    order = list(groups)
    random.Random(f"{seed}/{epoch}").shuffle(order)  # noqa: S311 (not for secrets)
    batches: list[TrainingBatch] = []
    size = cost = 0
    for group in order:
        size, cost = size + len(group.examples), cost + group.cost
        if not batches or size > limits.pairs or cost > limits.tokens:
            batches.append([])
            size, cost = len(group.examples), group.cost
        batches[-1].append(group)
    return batches


def example_indices(batch: TrainingBatch) -> list[int]:
    return [index for group in batch for index in group.examples]


def share_out(
    batch: TrainingBatch, ranks: int, examples: Examples, backbone: Backbone
) -> list[TrainingBatch]:
    """The examples of a batch by rank, every one once, so that the busiest rank has as little to compute as possible.

    Largest groups first, each to a rank that then has the least work (Graham 1969, longest processing time first).
    While it shortens the work, the largest group of the busiest rank is halved: what it shares is then computed twice.
    Large batches, and validation, are shared out by sums (`_GROUPS_BY_SHARE`), in time linear in their examples.
    """
    if ranks == 1:
        return [list(batch)]
    if len(batch) > _GROUPS_BY_SHARE or len(example_indices(batch)) > _EXAMPLES_BY_SHARE:
        return _share_out_by_sums(batch, ranks, examples, backbone)

    def work_of(groups: TrainingBatch) -> float:
        key = frozenset(example_indices(groups))
        if key not in known:
            known[key] = backbone.work(_rendered(sorted(key), examples)) if key else 0.0
        return known[key]

    known: dict[frozenset[int], float] = {}
    groups = list(batch)
    best = _assign(groups, ranks, work_of)
    loads = [work_of(share) for share in best]
    while divisible := [group for group in best[loads.index(max(loads))] if len(group.examples) > 1]:
        largest = max(divisible, key=lambda group: work_of([group]))
        groups = [group for group in groups if group is not largest] + _halves(largest, examples, backbone)
        shares = _assign(groups, ranks, work_of)
        new_loads = [work_of(share) for share in shares]
        if sorted(new_loads, reverse=True) >= sorted(loads, reverse=True):
            break
        best, loads = shares, new_loads
    return best


def _assign(
    groups: TrainingBatch, ranks: int, work_of: Callable[[TrainingBatch], float]
) -> list[TrainingBatch]:
    shares: list[TrainingBatch] = [[] for _ in range(ranks)]
    for group in sorted(groups, key=lambda group: work_of([group]), reverse=True):
        idlest = sorted(range(ranks), key=lambda rank: work_of(shares[rank]))[:_CANDIDATES]
        rank = min(idlest, key=lambda rank: work_of([*shares[rank], group]))  # one that shares most with it
        shares[rank].append(group)
    return shares


def _share_out_by_sums(
    batch: TrainingBatch, ranks: int, examples: Examples, backbone: Backbone
) -> list[TrainingBatch]:
    """As `share_out`, with the work of a share taken as the sum of its groups'. Only groups of more work than a rank's
    part of the whole are halved."""

    def with_work(group: ExampleGroup) -> tuple[float, ExampleGroup]:
        return backbone.work(_rendered(group.examples, examples)), group

    waiting = [with_work(group) for group in batch]
    most = sum(work for work, _ in waiting) / ranks
    found: list[tuple[float, ExampleGroup]] = []
    while waiting:
        work, group = waiting.pop()
        if work > most and len(group.examples) > 1:
            waiting += map(with_work, _halves(group, examples, backbone))
        else:
            found.append((work, group))
    shares: list[TrainingBatch] = [[] for _ in range(ranks)]
    loads = [(0.0, rank) for rank in range(ranks)]  # a heap
    for work, group in sorted(found, key=lambda each: (-each[0], each[1].examples)):
        load, rank = loads[0]
        heapq.heapreplace(loads, (load + work, rank))
        shares[rank].append(group)
    return shares


def micro_batches(batch: TrainingBatch, budget: int) -> list[TrainingBatch]:
    """The groups of a batch, in parts whose cost is at most `budget`; a group that costs more is a part alone."""
    parts: list[TrainingBatch] = []
    used = 0
    for group in sorted(batch, key=lambda group: group.cost):
        if not parts or used + group.cost > budget:
            parts.append([])
            used = 0
        parts[-1].append(group)
        used += group.cost
    return parts


def split_groups(batch: TrainingBatch, examples: Examples, backbone: Backbone, budget: int) -> TrainingBatch:
    """The same examples, in groups that cost no more than the budget, or of one example."""
    groups: TrainingBatch = []
    for group in batch:
        if group.cost <= budget:
            groups.append(group)
        else:
            groups += _halve_to_budget(group.examples, examples, backbone, budget)
    return groups


def cheapest_example(examples: Examples, backbone: Backbone) -> ExampleGroup:
    """What a rank computes, without effect, while others still have micro batches."""
    costs = [_cost((index,), examples, backbone) for index in range(len(examples))]
    index = costs.index(min(costs))
    return ExampleGroup((index,), costs[index])


def _halve_to_budget(
    indices: Sequence[int], examples: Examples, backbone: Backbone, budget: int
) -> list[ExampleGroup]:
    cost = _cost(indices, examples, backbone)
    if cost <= budget or len(indices) == 1:
        return [ExampleGroup(tuple(indices), cost)]
    middle = len(indices) // 2
    return [
        group
        for half in (indices[:middle], indices[middle:])
        for group in _halve_to_budget(half, examples, backbone, budget)
    ]


def _halves(group: ExampleGroup, examples: Examples, backbone: Backbone) -> TrainingBatch:
    middle = len(group.examples) // 2
    return [
        ExampleGroup(half, _cost(half, examples, backbone))
        for half in (group.examples[:middle], group.examples[middle:])
    ]


def _cost(indices: Sequence[int], examples: Examples, backbone: Backbone) -> int:
    return backbone.cost(_rendered(indices, examples))


def _rendered(indices: Sequence[int], examples: Examples) -> list[Any]:
    trajectories = {
        trajectory for index in indices for trajectory in examples.items[index].trajectory_indices
    }
    return [examples.rendered[trajectory] for trajectory in sorted(trajectories)]
