"""Several components' numbers as one: a weighted sum on the reward scale.

Where a single reward model counts, raw, baseline and steps are that model's own. Otherwise they are sums over
components, of w_c (x_c - median_c) / std_c for raw and baseline, of w_c x_c / std_c for steps; what is no reward model
has the median 0 and the standard deviation 1. Where each one's steps sum to its raw - baseline, those of the whole do.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from workers.engine.protocol import Rated, RawScore
from workers.engine.transforms import Whole, normalise


@dataclass(frozen=True, slots=True)
class Part:
    """One component's number for an item, in its own units. median, scale: of its reward statistics."""

    name: str
    weight: float
    raw: float
    baseline: float
    std: float | None
    steps: tuple[float, ...]
    median: float = 0.0
    scale: float = 1.0
    is_model: bool = False

    @classmethod
    def of_model(cls, name: str, weight: float, score: RawScore, median: float, scale: float) -> "Part":
        steps = tuple(score.step_rewards)
        return cls(name, weight, score.raw, score.baseline, score.std, steps, median, scale, is_model=True)

    @classmethod
    def of_rule(cls, name: str, weight: float, rated: Rated) -> "Part":
        return cls(name, weight, rated.value, 0.0, 0.0, rated.steps)

    @property
    def value(self) -> float:
        """On the reward scale, before its weight."""
        return normalise(self.raw, self.median, self.scale)


def combine(parts: Sequence[Part]) -> Whole:
    """components: what each adds to the reward; they sum to it. std: None unless every component has one.

    Components of weight 0 are there to be looked at by a gate, and add nothing.
    """
    values = {part.name: part.value for part in parts}
    counted = [part for part in parts if part.weight]
    components = {part.name: part.weight * part.value for part in counted}
    stds = [None if part.std is None else part.weight * part.std / part.scale for part in counted]
    known = [std for std in stds if std is not None]
    std = math.hypot(*known) if len(known) == len(counted) else None
    reward = math.fsum(components.values())
    if len(counted) == 1 and counted[0].is_model:
        (one,) = counted
        unit = one.weight / one.scale
        zero = -unit * one.median
        return Whole(reward, one.raw, one.baseline, std, one.steps, unit, zero, components, values)
    baseline = math.fsum(
        part.weight * normalise(part.baseline, part.median, part.scale) if part.is_model else 0.0
        for part in counted
    )
    by_step = zip(*(part.steps for part in counted), strict=True)
    steps = tuple(
        math.fsum(part.weight * step / part.scale for part, step in zip(counted, rewards, strict=True))
        for rewards in by_step
    )
    zero = -math.fsum(part.weight * part.median / part.scale for part in counted)
    return Whole(reward, reward, baseline, std, steps, 1.0, zero, components, values)
