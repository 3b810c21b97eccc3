"""Normalisation by the rewards that came: of a group, of a request, or of all so far."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from workers.schema.transforms import RunningNormalise


@dataclass(slots=True)
class RunningMoments:
    """Mean and variance of all that was added. In memory of one version in one process; not thread-safe.

    Chan et al. (1979): two sets' moments make those of their union.
    """

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, values: Sequence[float]) -> None:
        count, mean = len(values), math.fsum(values) / len(values)
        squares = math.fsum((value - mean) * (value - mean) for value in values)
        total, apart = self.count + count, mean - self.mean
        self.squares += squares + apart * apart * self.count * count / total
        self.mean += apart * count / total
        self.count = total

    @property
    def std(self) -> float:
        """Of the population; 0 for equal values."""
        return math.sqrt(self.squares / self.count)


def standardised(
    transform: RunningNormalise, rewards: Sequence[float], moments: RunningMoments
) -> Callable[[float], float]:
    """(r - mean) / std within [-clip, clip], 0 where all are equal. moments: to which `rewards` are added first.

    Secrets of RLHF, part I (Zheng et al., arXiv 2307.04964), PPO-max: reward normalisation and clipping.
    """
    moments.add(rewards)
    mean, std = moments.mean, moments.std
    if not std > 1e-12 * max(1.0, abs(mean)):
        return lambda reward: max(-transform.clip, min(reward - mean, transform.clip))
    return lambda reward: max(-transform.clip, min((reward - mean) / std, transform.clip))
