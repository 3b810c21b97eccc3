"""Batches and micro batches: examples, shuffled and filled up to budgets of examples and tokens."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from workers.models import Backbone
from workers.objectives import Examples
from workers.schema.recipe import Recipe


@dataclass(frozen=True, slots=True)
class ExampleGroup:
    """Indices of examples that stay together, and their cost (`Backbone.cost`)."""

    examples: tuple[int, ...]
    cost: int


TrainingBatch = list[ExampleGroup]


def make_groups(examples: Examples, backbone: Backbone, recipe: Recipe) -> list[ExampleGroup]:
    """Examples of one task stay together where the backbone computes shared beginnings of trajectories once."""
    if not backbone.shares:
        found = [[index] for index in range(len(examples))]
    else:
        tasks: dict[str, list[int]] = {}
        for index, example in enumerate(examples.items):
            tasks.setdefault(example.task, []).append(index)
        found = [
            task[start : start + recipe.batch_pairs]
            for task in tasks.values()
            for start in range(0, len(task), recipe.batch_pairs)
        ]
    groups: list[ExampleGroup] = []
    for indices in found:
        groups += _halve_to_budget(indices, examples, backbone, recipe.batch_tokens)
    return groups


def epoch_batches(
    groups: Sequence[ExampleGroup], recipe: Recipe, *, seed: int, epoch: int
) -> list[TrainingBatch]:
    """Every group once; the same for the same seed and epoch."""
    order = list(groups)
    random.Random(f"{seed}/{epoch}").shuffle(order)  # noqa: S311 (not for secrets)
    batches: list[TrainingBatch] = []
    size = cost = 0
    for group in order:
        size, cost = size + len(group.examples), cost + group.cost
        if not batches or size > recipe.batch_pairs or cost > recipe.batch_tokens:
            batches.append([])
            size, cost = len(group.examples), group.cost
        batches[-1].append(group)
    return batches


def example_indices(batch: TrainingBatch) -> list[int]:
    return [index for group in batch for index in group.examples]


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
    return [
        part
        for group in batch
        for part in (
            [group]
            if group.cost <= budget
            else _halve_to_budget(list(group.examples), examples, backbone, budget)
        )
    ]


def _halve_to_budget(
    indices: list[int], examples: Examples, backbone: Backbone, budget: int
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


def _cost(indices: Sequence[int], examples: Examples, backbone: Backbone) -> int:
    trajectories = sorted(
        {trajectory for index in indices for trajectory in examples.items[index].trajectory_indices}
    )
    return backbone.cost([examples.rendered[trajectory] for trajectory in trajectories])
