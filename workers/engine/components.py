"""Several models' scores as one: a weighted sum on the reward scale.

With one component, raw, baseline and steps are that model's own. With several they are sums over components:
of w_c (x_c - median_c) / std_c for raw and baseline, of w_c x_c / std_c for steps. Where each one's steps
sum to its raw - baseline, those of the whole do too.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from workers.engine.protocol import RawScore
from workers.engine.transforms import normalise


@dataclass(frozen=True, slots=True)
class Part:
    """One component's score of an item, with its model's reward statistics."""

    name: str
    weight: float
    median: float
    scale: float  # the statistics' standard deviation
    score: RawScore


@dataclass(frozen=True, slots=True)
class Combined:
    """reward: the weighted sum on the reward scale, before transforms. std: on the reward scale too."""

    reward: float
    raw: float
    baseline: float
    std: float | None
    steps: tuple[float, ...]
    components: dict[str, float]


def combine(parts: Sequence[Part]) -> Combined:
    """components: what each adds to the reward; they sum to it. std: None unless every component has one."""
    components = {
        part.name: part.weight * normalise(part.score.raw, part.median, part.scale) for part in parts
    }
    stds = [None if part.score.std is None else part.weight * part.score.std / part.scale for part in parts]
    known = [std for std in stds if std is not None]
    std = math.hypot(*known) if len(known) == len(parts) else None
    reward = math.fsum(components.values())
    if len(parts) == 1:
        score = parts[0].score
        return Combined(reward, score.raw, score.baseline, std, tuple(score.step_rewards), components)
    baseline = math.fsum(
        part.weight * normalise(part.score.baseline, part.median, part.scale) for part in parts
    )
    by_step = zip(*(part.score.step_rewards for part in parts), strict=True)
    steps = tuple(
        math.fsum(part.weight * step / part.scale for part, step in zip(parts, rewards, strict=True))
        for rewards in by_step
    )
    return Combined(reward, reward, baseline, std, steps, components)
