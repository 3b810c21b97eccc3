"""The return of a trajectory, shared by its steps."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

from workers.engine.item_score import ItemScore
from workers.schema.transforms import Redistribute


def shares(paths: Sequence[Sequence[float]]) -> list[float]:
    """By step, the part of the progress that is made at it: the increases of all paths, over their sum; equal parts
    where nothing increases. They are at least 0 and sum to 1. paths: [components][agent steps + 1]."""
    steps = [
        sum(max(after - before, 0.0) for before, after in pairs)
        for pairs in zip(*map(pairwise, paths), strict=True)
    ]
    total = sum(steps)
    return [step / total for step in steps] if total > 0 else [1 / len(steps)] * len(steps)


def apply(transform: Redistribute, score: ItemScore) -> ItemScore:
    """The reward is kept, and so is what steps sum to: what has gathered lies between 0 and that, and never turns."""
    total = sum(score.gains)
    parts = shares([score.potentials[name] for name in transform.components])
    gathered = [total * min(part, 1.0) for part in accumulate(parts)]
    gathered[-1] = total
    return score.with_gains(
        [after - before for before, after in pairwise((0.0, *gathered))], reward=score.reward
    )
