"""Transforms of a reward: pure functions, each with its bound stated."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from workers.errors import RewardError
from workers.schema.endpoints import Clip, Delta, Gate, Normalise, Pessimism, Squash, Transform


@dataclass(frozen=True, slots=True)
class Whole:
    """One item's reward, and what transforms may look at.

    reward, std, components, values: on the reward scale. values: of every component before its weight; components:
    what each adds. raw, baseline, steps: in units of which one is worth `unit` on the reward scale, 0 being at `zero`.
    """

    reward: float
    raw: float
    baseline: float
    std: float | None
    steps: tuple[float, ...]
    unit: float = 1.0
    zero: float = 0.0
    components: dict[str, float] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)


def normalise(raw: float, median: float, std: float) -> float:
    """The reward scale: standard deviations of the training trajectories' raw rewards above their median."""
    return (raw - median) / std


def clip(reward: float, eta: float) -> float:
    """min(reward - eta, 0), in (-inf, 0]; non-decreasing in reward."""
    return min(reward - eta, 0.0)


def squash(reward: float, scale: float) -> float:
    """scale * tanh(reward / scale), in [-scale, scale]; non-decreasing in reward, slope 1 at zero."""
    return scale * math.tanh(reward / scale)


def pessimism(reward: float, std: float, k: float) -> float:
    """reward - k * std, at most the reward; the lower confidence bound of an ensemble (arXiv 2310.02743)."""
    return reward - k * std


def gate(reward: float, value: float, at_least: float, otherwise: float) -> float:
    """`otherwise` where the gate's value is below `at_least`, else the reward: in {reward, otherwise}."""
    return reward if value >= at_least else otherwise


def differences(steps: Sequence[float]) -> tuple[float, ...]:
    """s_t - s_(t-1), with s_(-1) = 0. Their sums up to any step are that step's score: bounded by the largest one."""
    return tuple(step - before for step, before in zip(steps, (0.0, *steps[:-1]), strict=True))


def delta(whole: Whole) -> Whole:
    """Steps become differences, and the raw reward what they add up to: the last step's score. The baseline is 0."""
    raw = whole.steps[-1]
    reward = whole.reward + whole.unit * (raw - whole.raw)
    return replace(whole, steps=differences(whole.steps), raw=raw, baseline=0.0, reward=reward)


def apply(transforms: Sequence[Transform], whole: Whole) -> Whole:
    """An item's reward, already normalised, through the transforms in their order."""
    for transform in transforms:
        if isinstance(transform, Clip):
            whole = replace(whole, reward=clip(whole.reward, transform.eta))
        elif isinstance(transform, Squash):
            whole = replace(whole, reward=squash(whole.reward, transform.scale))
        elif isinstance(transform, Pessimism):
            whole = replace(whole, reward=pessimism(whole.reward, _std(whole), transform.k))
        elif isinstance(transform, Gate):
            value = whole.values[transform.component]
            passed = gate(whole.reward, value, transform.at_least, transform.otherwise)
            whole = replace(whole, reward=passed)
        elif isinstance(transform, Delta):
            whole = delta(whole)
        elif not isinstance(transform, Normalise):
            raise TypeError(f"no function for the transform {transform!r}")
    return whole


def _std(whole: Whole) -> float:
    if whole.std is None:
        raise RewardError(
            "pessimism needs an ensemble: a model of this endpoint has a single head, so it has no standard deviation. "
            "Train it with `ensemble` above 1, or leave the transform out."
        )
    return whole.std
