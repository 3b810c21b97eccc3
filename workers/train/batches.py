"""Which examples go through the model together: shuffled, filled to budgets of examples and tokens."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from workers.models import Backbone
from workers.objectives import Examples
from workers.schema.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Group:
    """Examples that stay together, and what they make the model compute."""

    examples: tuple[int, ...]
    cost: int


Batch = list[Group]


def make_groups(examples: Examples, backbone: Backbone, recipe: Recipe) -> list[Group]:
    """Where the model gains by it, what is said of one task stays together: its trajectories share their beginnings."""
    if not backbone.shares:
        found = [[place] for place in range(len(examples))]
    else:
        tasks: dict[str, list[int]] = {}
        for place, one in enumerate(examples.items):
            tasks.setdefault(one.task, []).append(place)
        found = [
            task[start : start + recipe.batch_pairs]
            for task in tasks.values()
            for start in range(0, len(task), recipe.batch_pairs)
        ]
    groups: list[Group] = []
    for group in found:
        groups += _within(group, examples, backbone, recipe.batch_tokens)
    return groups


def epoch_batches(groups: Sequence[Group], recipe: Recipe, *, seed: int, epoch: int) -> list[Batch]:
    """Every group once; the same for the same seed and epoch."""
    order = list(groups)
    random.Random(f"{seed}/{epoch}").shuffle(order)  # noqa: S311 (not for secrets)
    batches: list[Batch] = []
    size = cost = 0
    for group in order:
        size, cost = size + len(group.examples), cost + group.cost
        if not batches or size > recipe.batch_pairs or cost > recipe.batch_tokens:
            batches.append([])
            size, cost = len(group.examples), group.cost
        batches[-1].append(group)
    return batches


def examples_of(batch: Batch) -> list[int]:
    return [place for group in batch for place in group.examples]


def in_parts(batch: Batch, budget: int) -> list[Batch]:
    """The groups of a batch in parts of at most `budget`, or of one group that costs more."""
    parts: list[Batch] = []
    used = 0
    for group in sorted(batch, key=lambda one: one.cost):
        if not parts or used + group.cost > budget:
            parts.append([])
            used = 0
        parts[-1].append(group)
        used += group.cost
    return parts


def split(batch: Batch, examples: Examples, backbone: Backbone, budget: int) -> Batch:
    """The same examples, in groups that cost no more than the budget, or of one example."""
    return [
        half
        for group in batch
        for half in (
            [group] if group.cost <= budget else _within(list(group.examples), examples, backbone, budget)
        )
    ]


def _within(group: list[int], examples: Examples, backbone: Backbone, budget: int) -> list[Group]:
    whole = Group(tuple(group), _cost(group, examples, backbone))
    if whole.cost <= budget or len(group) == 1:
        return [whole]
    middle = len(group) // 2
    return _within(group[:middle], examples, backbone, budget) + _within(
        group[middle:], examples, backbone, budget
    )


def _cost(group: Sequence[int], examples: Examples, backbone: Backbone) -> int:
    places = sorted({place for one in group for place in examples.items[one].places})
    return backbone.cost([examples.rendered[place] for place in places])
