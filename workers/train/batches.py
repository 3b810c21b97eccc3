"""Which pairs go through the model together: shuffled, filled to a budget rather than a count."""

import random

from workers.schema.recipe import Recipe
from workers.text.chunks import FRAME
from workers.text.pairs import Pairs


def epoch_batches(pairs: Pairs, recipe: Recipe, *, seed: int, epoch: int) -> list[list[int]]:
    """Places of pairs, every one once; the same for the same seed and epoch.

    Where the encoder is trained, a task's pairs stay together, so that what they share is encoded once.
    """
    shuffle = random.Random(f"{seed}/{epoch}")  # noqa: S311 (not for secrets)
    order = list(range(len(pairs)))
    shuffle.shuffle(order)
    if recipe.unfrozen:
        tasks: dict[str, list[int]] = {}
        for place in order:
            tasks.setdefault(pairs.pairs[place].record.a.task.id, []).append(place)
        order = [place for task in tasks.values() for place in task]
    batches: list[list[int]] = []
    seen: dict[tuple[int, ...] | int, int] = {}
    for place in order:
        costs = _costs(pairs, place, recipe.unfrozen)
        total = sum((seen | costs).values())
        if not batches or len(batches[-1]) >= recipe.batch_pairs or total > recipe.batch_tokens:
            batches.append([])
            seen = {}
        batches[-1].append(place)
        seen |= costs
    return batches


def _costs(pairs: Pairs, place: int, unfrozen: bool) -> dict[tuple[int, ...] | int, int]:
    """What the pair makes the model compute, by what can be shared: chunks, or whole trajectories in the mixer."""
    pair = pairs.pairs[place]
    if not unfrozen:
        return {one: len(pairs.rendered[one].chunks) for one in (pair.a, pair.b)}
    both = (pairs.rendered[pair.a], pairs.rendered[pair.b])
    return {chunk.ids: len(chunk.ids) + FRAME for one in both for chunk in one.chunks}
