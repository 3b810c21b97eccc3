"""How good a set of metrics is: what of the feedback it covers, and what of it no one asked for.

AutoLibra (https://arxiv.org/abs/2505.02820, section 3.3): an aspect is covered if some trait of its trajectory says the
same with the same sign; a trait, a metric judged good or bad on a trajectory, is redundant if no aspect does. A metric
that does not apply to a trajectory is no trait of it, and counts nowhere. Intervals are drawn over trajectories, whose
aspects and traits belong together.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.errors import RewardError

DRAWS = 1000
Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aspect:
    """One point of a comment, tied to what the agent did. sign: 1 praise, -1 blame.

    step: the `step` index it is most likely about, with its chance; None where the agent did nothing.
    """

    trajectory: str
    behaviour: str
    feedback: str
    sign: int
    step: int | None = None
    chance: float | None = None
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trait:
    """A metric judged on a trajectory. sign: 1 good, -1 bad, 0 does not apply.

    step: where it shows. because: the aspect it was judged by, or None; reason: what a judge says for it.
    """

    trajectory: str
    metric: str
    sign: int
    step: int | None = None
    because: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Meta:
    """Shares, None where there is nothing to take one of; intervals hold 95 %."""

    coverage: float | None
    redundancy: float | None
    aspects: int
    traits: int
    coverage_interval: tuple[float, float] | None
    redundancy_interval: tuple[float, float] | None


def meta_metrics(
    aspects: Sequence[Aspect],
    traits: Sequence[Trait],
    matches: Mapping[int, Collection[int]],
    *,
    seed: int = 0,
) -> Meta:
    """matches: by the place of an aspect, the places of the traits that say the same. Raises RewardError for a match of
    different trajectories or signs, or with a trait that does not apply."""
    for place, met in matches.items():
        for other in met:
            aspect, trait = aspects[place], traits[other]
            if aspect.trajectory != trait.trajectory or aspect.sign != trait.sign or not trait.sign:
                raise RewardError(
                    f"aspect {place} and trait {other} ({trait.metric}) cannot match: they are of different "
                    "trajectories or signs."
                )
    covered = np.array([bool(matches.get(place)) for place in range(len(aspects))], dtype=float)
    used = {other for met in matches.values() for other in met}
    applying = [place for place, trait in enumerate(traits) if trait.sign]
    unused = np.array([place not in used for place in applying], dtype=float)
    of_aspects = [one.trajectory for one in aspects]
    of_traits = [traits[place].trajectory for place in applying]
    return Meta(
        coverage=float(covered.mean()) if len(covered) else None,
        redundancy=float(unused.mean()) if len(unused) else None,
        aspects=len(covered),
        traits=len(unused),
        coverage_interval=_interval(covered, of_aspects, seed),
        redundancy_interval=_interval(unused, of_traits, seed),
    )


def _interval(
    values: "np.ndarray[tuple[int], np.dtype[np.float64]]", groups: Sequence[str], seed: int
) -> tuple[float, float] | None:
    """Of the mean, groups drawn with replacement; None of fewer than two groups."""
    names = sorted(set(groups))
    if len(names) < 2:
        return None
    place = {name: number for number, name in enumerate(names)}
    rows = np.array([place[name] for name in groups])
    sums, counts = np.bincount(rows, values, len(names)), np.bincount(rows, minlength=len(names))
    draws = np.random.default_rng(seed).integers(len(names), size=(DRAWS, len(names)))
    means = sums[draws].sum(1) / counts[draws].sum(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)
