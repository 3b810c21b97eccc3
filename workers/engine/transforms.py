"""Transforms of a reward: pure functions of one number, each with its bound stated."""

import math
from collections.abc import Sequence

from workers.schema.endpoints import Clip, Normalise, Squash, Transform


def normalise(raw: float, median: float, std: float) -> float:
    """The reward scale: standard deviations of the training trajectories' raw rewards above their median."""
    return (raw - median) / std


def clip(reward: float, eta: float) -> float:
    """min(reward - eta, 0), in (-inf, 0]; non-decreasing in reward."""
    return min(reward - eta, 0.0)


def squash(reward: float, scale: float) -> float:
    """scale * tanh(reward / scale), in [-scale, scale]; non-decreasing in reward, slope 1 at zero."""
    return scale * math.tanh(reward / scale)


def apply(transforms: Sequence[Transform], reward: float) -> float:
    """`reward`, already normalised, through the transforms in their order."""
    for transform in transforms:
        if isinstance(transform, Clip):
            reward = clip(reward, transform.eta)
        elif isinstance(transform, Squash):
            reward = squash(reward, transform.scale)
        elif not isinstance(transform, Normalise):
            raise TypeError(f"no function for the transform {transform!r}")
    return reward
