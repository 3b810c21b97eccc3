"""Repeated steps gain once."""

from collections.abc import Sequence

from workers.engine.item_score import ItemScore
from workers.schema.transforms import NoRepeats


def paid_once(gains: Sequence[float], repeats: Sequence[int]) -> list[float]:
    """A step gains what it adds to the best of those before it that it repeats; losses stay. Steps that repeat each
    other gain together no more than the best of them. repeats: by step, equal for repeats."""
    best: dict[int, float] = {}
    paid = []
    for gain, key in zip(gains, repeats, strict=True):
        if gain <= 0:
            paid.append(gain)
            continue
        before = best.get(key, 0.0)
        best[key] = max(before, gain)
        paid.append(best[key] - before)
    return paid


def apply(transform: NoRepeats, score: ItemScore) -> ItemScore:
    return score.with_gains(paid_once(score.gains, score.repeats))
