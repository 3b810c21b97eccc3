"""Advantage estimators for groups of roll-outs of one prompt. Pure Python; the endpoint's `advantages` uses them.

    rollouts = [Rollout(reward=1.0), Rollout(reward=0.0)]
    advantages([rollouts], "grpo")[0][0].trajectory  # 0.707

Every estimator takes the roll-outs of one group and gives an advantage for each, and for each of its steps.
"""

import inspect
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

UNCALIBRATED = "steps:uncalibrated"  # the flag of a result whose step rewards say no step's credit
STEP_ESTIMATORS = ("grpo_process", "gigpo")


@dataclass(frozen=True, slots=True)
class Rollout:
    """reward: of the trajectory. steps: reward of each agent step, where it is known. states: by agent step, a name for
    what the agent saw before it (equal names, equal situations). stratum: roll-outs are grouped by it. flags: of the
    result that the rewards are from.
    """

    reward: float
    steps: tuple[float, ...] = ()
    states: tuple[str, ...] = ()
    stratum: Hashable = None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Advantage:
    """steps: by agent step; empty where the roll-out had none."""

    trajectory: float
    steps: tuple[float, ...]


class InvalidOption(ValueError):
    """name: of the option."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.name = name


class UncalibratedSteps(ValueError):
    """An estimator that needs step rewards was given such that say no step's credit."""


Estimator = Callable[..., list[Advantage]]


def advantages(
    groups: Sequence[Sequence[Rollout]],
    estimator: str = "grpo",
    *,
    uncalibrated_steps: bool = False,
    **options: Any,
) -> list[list[Advantage]]:
    """One list for each group, in order. options: those of the estimator. Raises ValueError for invalid input.

    `gigpo` and `grpo_process` refuse step rewards that are flagged `steps:uncalibrated`, with UncalibratedSteps, unless
    uncalibrated_steps is true.
    """
    if estimator not in ESTIMATORS:
        raise ValueError(f"unknown estimator {estimator!r}; known are {', '.join(ESTIMATORS)}")
    _check_options(estimator, options)
    _check_steps(groups, estimator, uncalibrated_steps)
    try:
        found = [ESTIMATORS[estimator](group, **options) for group in groups]
    except ZeroDivisionError as error:
        raise ValueError(
            f"{estimator}: the rewards of a group are equal and eps is {options.get('eps')}, so there is nothing to "
            "divide by; give eps a value above 0"
        ) from error
    except ArithmeticError as error:
        raise ValueError(f"{estimator}: the rewards are too large to compute with") from error
    if not all(
        math.isfinite(number)
        for group in found
        for advantage in group
        for number in (advantage.trajectory, *advantage.steps)
    ):
        raise ValueError(f"{estimator}: the rewards are too large to be distinguished in floating point")
    return found


def _check_options(estimator: str, options: Mapping[str, Any]) -> None:
    """Raises InvalidOption for an option that the estimator does not have, and for a value that is not of its kind."""
    taken = {
        name: parameter.default
        for name, parameter in inspect.signature(ESTIMATORS[estimator]).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    for name, value in options.items():
        if name not in taken:
            known = f"its options are {', '.join(taken)}" if taken else "it has no options"
            raise InvalidOption(f"{estimator} has no option {name!r}; {known}", name)
        wanted = _wanted(name, taken[name], value)
        if wanted is not None:
            raise InvalidOption(f"{name} is {value!r}; it must be {wanted}", name)


def _check_steps(groups: Sequence[Sequence[Rollout]], estimator: str, allowed: bool) -> None:
    if not isinstance(allowed, bool):
        raise InvalidOption(
            f"uncalibrated_steps is {allowed!r}; it must be true or false", "uncalibrated_steps"
        )
    if estimator not in STEP_ESTIMATORS or allowed:
        return
    if any(UNCALIBRATED in rollout.flags for group in groups for rollout in group):
        raise UncalibratedSteps(
            f"{estimator} needs step rewards, and those of this model are not calibrated: it learnt from comparisons "
            "or rankings of whole trajectories (aggregation value). Use grpo or rloo, or a model of step labels or "
            "outcomes (process, progress); uncalibrated_steps = true uses them as they are"
        )


def _wanted(name: str, usual: Any, value: Any) -> str | None:
    """What the value of an option should be; None where it is that."""
    if isinstance(usual, bool):
        return None if isinstance(value, bool) else "true or false"
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return "a finite number"
    if name == "eps" and value < 0:
        return "at least 0"
    return "from 0 to 1" if name == "gamma" and not 0 <= value <= 1 else None


def grpo(group: Sequence[Rollout], *, scale: bool = True, eps: float = 1e-4) -> list[Advantage]:
    """(r_i - mean r) / (std r + eps); every step has its roll-out's. A group of one, or of equals, has 0.

    scale False: without the division (Dr. GRPO, arXiv 2503.20783). std: of the sample, n - 1, as TRL and verl have it.
    DeepSeekMath (Shao et al., arXiv 2402.03300), section 4.1.2.
    """
    return _spread(group, _standardised([rollout.reward for rollout in group], scale, eps))


def grpo_process(group: Sequence[Rollout], *, scale: bool = True, eps: float = 1e-4) -> list[Advantage]:
    """Step rewards standardised over all steps of the group; a step has the sum of its reward and the later ones.

    The trajectory has its first step's: the sum of all. DeepSeekMath (arXiv 2402.03300), section 4.1.3.
    """
    _require(group, "steps")
    flat = iter(_standardised([reward for rollout in group for reward in rollout.steps], scale, eps))
    found = []
    for rollout in group:
        steps = _to_go([next(flat) for _ in rollout.steps], 1.0)
        found.append(Advantage(steps[0], tuple(steps)))
    return found


def rloo(group: Sequence[Rollout]) -> list[Advantage]:
    """r_i - mean of the others' r; 0 in a group of one. RLOO (Ahmadian et al., arXiv 2402.14740), eq. 8."""
    total, count = math.fsum(rollout.reward for rollout in group), len(group)
    if count < 2:
        return _spread(group, [0.0] * count)
    return _spread(group, [rollout.reward - (total - rollout.reward) / (count - 1) for rollout in group])


def gigpo(
    group: Sequence[Rollout],
    *,
    omega: float = 1.0,
    gamma: float = 0.95,
    scale: bool = True,
    eps: float = 1e-6,
) -> list[Advantage]:
    """A_E + omega * A_S. A_E: as `grpo`, of the roll-outs. A_S: among all steps of the group with an equal state, their
    discounted rewards to go, standardised; 0 for a state that was met once.

    scale False: without dividing by the standard deviations. GiGPO (Feng et al., arXiv 2505.10978), eq. 3 to 9.
    """
    _require(group, "steps")
    _require(group, "states")
    episode = _standardised([rollout.reward for rollout in group], scale, eps)
    returns = [_to_go(rollout.steps, gamma) for rollout in group]
    met: dict[str, list[tuple[int, int]]] = {}
    for i, rollout in enumerate(group):
        for t, state in enumerate(rollout.states):
            met.setdefault(state, []).append((i, t))
    within = [[0.0] * len(rollout.steps) for rollout in group]
    for places in met.values():
        for (i, t), value in zip(
            places, _standardised([returns[i][t] for i, t in places], scale, eps), strict=True
        ):
            within[i][t] = value
    return [
        Advantage(base, tuple(base + omega * value for value in values))
        for base, values in zip(episode, within, strict=True)
    ]


def stratified(
    group: Sequence[Rollout], *, alpha: float = 0.8, scale: bool = True, eps: float = 1e-4
) -> list[Advantage]:
    """alpha * (advantage among the roll-outs of its stratum) + (1 - alpha) * (as `grpo` over the whole group).

    Roll-outs that differ in kind, as in the number of their tool calls, are not compared with each other.
    Stratified GRPO (Zhu et al., arXiv 2510.06214): stratified advantage normalisation, blended.
    """
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha is {alpha}; it must be from 0 (the whole group) to 1 (the strata alone)")
    overall = _standardised([rollout.reward for rollout in group], scale, eps)
    strata: dict[Hashable, list[int]] = {}
    for i, rollout in enumerate(group):
        strata.setdefault(rollout.stratum, []).append(i)
    found = list(overall)
    for places in strata.values():
        for i, value in zip(
            places, _standardised([group[i].reward for i in places], scale, eps), strict=True
        ):
            found[i] = alpha * value + (1 - alpha) * overall[i]
    return _spread(group, found)


ESTIMATORS: Mapping[str, Estimator] = {
    "grpo": grpo,
    "grpo_process": grpo_process,
    "rloo": rloo,
    "gigpo": gigpo,
    "stratified": stratified,
}


def _standardised(values: Sequence[float], scale: bool, eps: float) -> list[float]:
    """(v - mean) / (std + eps), std of the sample; 0 for one value."""
    if len(values) < 2:
        return [0.0] * len(values)
    mean = math.fsum(values) / len(values)
    centred = [value - mean for value in values]
    if not scale:
        return centred
    std = math.sqrt(math.fsum(value**2 for value in centred) / (len(values) - 1))
    return [value / (std + eps) for value in centred]


def _to_go(rewards: Sequence[float], gamma: float) -> list[float]:
    """Sum over k >= t of gamma^(k - t) r_k."""
    total, found = 0.0, []
    for reward in reversed(rewards):
        total = reward + gamma * total
        found.append(total)
    return found[::-1]


def _spread(group: Sequence[Rollout], values: Sequence[float]) -> list[Advantage]:
    return [
        Advantage(value, (value,) * max(len(rollout.steps), len(rollout.states)))
        for rollout, value in zip(group, values, strict=True)
    ]


def _require(group: Sequence[Rollout], name: str) -> None:
    for i, rollout in enumerate(group):
        if not getattr(rollout, name):
            raise ValueError(f"roll-out {i} has no {name}, which this estimator needs")
        if rollout.states and len(rollout.states) != len(rollout.steps):
            raise ValueError(f"roll-out {i} has {len(rollout.states)} states for {len(rollout.steps)} steps")
