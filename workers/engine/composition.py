"""From the scores of an endpoint's components to one reward: a weighted sum on the reward scale, then transforms. Pure.

Where a single reward model counts, raw, offset and steps are that model's own. Otherwise they are sums over components,
of w_c (x_c - median_c) / std_c for raw and offset, of w_c x_c / std_c for steps; what is no reward model has the median
0 and the standard deviation 1. Where each component's steps sum to its raw - offset, those of the sum do.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from workers.errors import RewardError
from workers.schema.endpoints import Clip, Delta, Gate, Normalise, Pessimism, Squash, Transform
from workers.schema.model_score import ModelScore
from workers.schema.reasons import Reason


@dataclass(frozen=True, slots=True)
class ItemScore:
    """One item's score by an endpoint.

    reward, std, components, values: on the reward scale; reward: transforms included. components: what each component
    adds; values: of every component before its weight. raw, offset, steps: in units of which one is worth `unit` on the
    reward scale, 0 being at `zero`; steps: as bounded as the reward is. step_scores: of process rewards
    (PROCESS_AGGREGATIONS), each step's own score, treated as a reward is. critiques: by component, of models that write
    and of judges. preferred: of two that were compared by a model that can, how likely this one is the better.
    cut_tokens: of the input, not read by the first model. task_tokens: what the task was cut to, if it was. reasons: by
    component, what moved it, where that was asked for. reason_tokens: of the copies that were scored to find out.
    """

    reward: float
    raw: float
    offset: float
    std: float | None
    steps: tuple[float, ...]
    unit: float = 1.0
    zero: float = 0.0
    components: dict[str, float] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    tokens: int = 0
    cached_tokens: int = 0
    cut_tokens: int = 0
    task_tokens: int | None = None
    criteria: dict[str, float] | None = None
    step_scores: tuple[float, ...] = ()
    critiques: dict[str, str] = field(default_factory=dict)
    preferred: float | None = None
    reasons: Mapping[str, Sequence[Reason]] = field(default_factory=dict)
    reason_tokens: int = 0


@dataclass(frozen=True, slots=True)
class WeightedComponent:
    """A component's part in the sum. median, scale: of its reward statistics."""

    name: str
    weight: float
    median: float = 0.0
    scale: float = 1.0
    is_model: bool = False


def combine(components: Sequence[WeightedComponent], scores: Sequence[ModelScore]) -> ItemScore:
    """components: what each adds to the reward; they sum to it. std: None unless every component has one.

    Components of weight 0 are there for a gate to read, and add nothing.
    """
    parts = list(zip(components, scores, strict=True))
    values = {
        component.name: normalise(score.raw, component.median, component.scale) for component, score in parts
    }
    counted = [(component, score) for component, score in parts if component.weight]
    added = {component.name: component.weight * values[component.name] for component, _ in counted}
    stds = [
        None if score.std is None else component.weight * score.std / component.scale
        for component, score in counted
    ]
    known = [std for std in stds if std is not None]
    std = math.hypot(*known) if len(known) == len(counted) else None
    reward = math.fsum(added.values())
    if len(counted) == 1 and counted[0][0].is_model:
        ((component, score),) = counted
        unit = component.weight / component.scale
        zero = -unit * component.median
        return ItemScore(reward, score.raw, score.offset, std, score.step_rewards, unit, zero, added, values)
    offset = math.fsum(
        component.weight * normalise(score.offset, component.median, component.scale)
        if component.is_model
        else 0.0
        for component, score in counted
    )
    by_step = zip(*(score.step_rewards for _, score in counted), strict=True)
    steps = tuple(
        math.fsum(
            component.weight * step / component.scale
            for (component, _), step in zip(counted, rewards, strict=True)
        )
        for rewards in by_step
    )
    zero = -math.fsum(component.weight * component.median / component.scale for component, _ in counted)
    return ItemScore(reward, reward, offset, std, steps, 1.0, zero, added, values)


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


def delta(score: ItemScore) -> ItemScore:
    """Steps become differences, and the raw reward what they add up to: the last step's score. The offset is 0."""
    raw = score.steps[-1]
    reward = score.reward + score.unit * (raw - score.raw)
    return replace(score, steps=differences(score.steps), raw=raw, offset=0.0, reward=reward)


def apply(
    transforms: Sequence[Transform], score: ItemScore, *, is_additive: bool = True, **details: Any
) -> ItemScore:
    """An item's reward, already normalised, through the transforms in their order.

    What bounds the reward bounds steps too. is_additive: steps add up to the reward; else each has its own. details:
    further fields of the result. Raises RewardError for pessimism without an ensemble.
    """
    if any(isinstance(transform, Delta) for transform in transforms):
        score = delta(score)
    steps = score.steps
    if any(isinstance(transform, Clip | Squash | Gate) for transform in transforms):
        bound = bounded_steps if is_additive else bounded_scores
        steps = bound(transforms, score)
    reward = transformed(transforms, score.reward, score)
    return replace(score, reward=reward, steps=steps, **details)


def transformed(transforms: Sequence[Transform], reward: float, score: ItemScore) -> float:
    """A reward through the transforms. score: of the item, whose standard deviation and values these look at."""
    for transform in transforms:
        if isinstance(transform, Clip):
            reward = clip(reward, transform.eta)
        elif isinstance(transform, Squash):
            reward = squash(reward, transform.scale)
        elif isinstance(transform, Pessimism):
            reward = pessimism(reward, _required_std(score), transform.k)
        elif isinstance(transform, Gate):
            value = score.values[transform.component]
            reward = gate(reward, value, transform.at_least, transform.otherwise)
        elif not isinstance(transform, Normalise | Delta):
            raise TypeError(f"no function for the transform {transform!r}")
    return reward


def bounded_steps(transforms: Sequence[Transform], score: ItemScore) -> tuple[float, ...]:
    """Each step's change of the transformed reward: what has gathered after any step is the transformed reward there,
    less that before the first step. Repeating a good step gains no more than the transforms allow.

    score: before the transforms; its steps add up to its reward. The same units.
    """
    rewards = [score.reward]
    for step in reversed(score.steps):
        rewards.append(rewards[-1] - score.unit * step)
    bounded = [transformed(transforms, reward, score) for reward in reversed(rewards)]
    return tuple((after - before) / score.unit for before, after in pairwise(bounded))


def bounded_scores(transforms: Sequence[Transform], score: ItemScore) -> tuple[float, ...]:
    """Of process rewards, whose steps do not add up: each step's own transformed reward, in units of `unit`."""
    return tuple(step / score.unit for step in step_scores(transforms, score))


def step_scores(transforms: Sequence[Transform], combined: ItemScore) -> tuple[float, ...]:
    """Of process rewards: each step's score as if it were the reward. combined: before transforms."""
    return tuple(
        transformed(transforms, combined.zero + combined.unit * step, combined) for step in combined.steps
    )


def _required_std(score: ItemScore) -> float:
    if score.std is None:
        raise RewardError(
            "pessimism needs an ensemble: a model of this endpoint has a single head, so it has no standard deviation. "
            "Train it with `ensemble` above 1, or remove the transform."
        )
    return score.std
