"""What a composed reward is made of, and what it rewards by mistake: pure functions over the scores of trajectories.

contributions: [trajectories, components], what each component adds to the reward: weight * value, before transforms.
After the reward analysis of Lucy-SKG (arXiv 2305.15801).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau, rankdata

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
RESAMPLES = 500
MIN_TASKS = 5
FACTORS = (0.0, 0.5, 2.0)  # by which each weight is multiplied
_EPSILON = 1e-12
CLEAR = 0.5


def variance_shares(contributions: Floats) -> Floats:
    """Of each component in the variance of their sum: cov(component, sum) / var(sum). They add up to 1; below 0 where a
    component pulls against the others. Zeros where the sum is constant."""
    total = contributions.sum(axis=1)
    if total.var() < _EPSILON:
        return np.zeros(contributions.shape[1])
    centred = contributions - contributions.mean(axis=0)
    shares: Floats = (centred * (total - total.mean())[:, None]).mean(axis=0) / total.var()
    return shares


def correlations(columns: Floats) -> list[list[float | None]]:
    """Pearson's, [columns, columns]; None where a column is constant."""
    spread = columns.std(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        matrix = np.corrcoef(columns, rowvar=False).reshape(columns.shape[1], columns.shape[1])
    is_known = spread > _EPSILON
    return [
        [
            float(matrix[row, column]) if is_known[row] and is_known[column] else None
            for column in range(len(spread))
        ]
        for row in range(len(spread))
    ]


def rank_correlation(a: Floats, b: Floats) -> float | None:
    """Spearman's; None where one of them is constant."""
    first, second = rankdata(a), rankdata(b)
    if first.std() < _EPSILON or second.std() < _EPSILON:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def task_bootstrap(
    statistic: Callable[[Ints], float | None], tasks: Ints, *, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[float, float] | None:
    """95 % interval of a statistic of rows, by tasks drawn with replacement. None with fewer than MIN_TASKS tasks."""
    found = np.unique(tasks)
    if len(found) < MIN_TASKS:
        return None
    rows = [np.flatnonzero(tasks == task) for task in found]
    random = np.random.default_rng(seed)
    values = []
    for _ in range(resamples):
        drawn = np.concatenate([rows[place] for place in random.integers(0, len(rows), len(rows))])
        value = statistic(drawn)
        if value is not None:
            values.append(value)
    if len(values) < resamples // 2:
        return None
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def sensitivity(contributions: Floats, tasks: Ints) -> list[list[dict[str, float]]]:
    """By component and factor of FACTORS: what happens to the order of trajectories when its weight is multiplied.

    tau: Kendall's rank correlation with the order as it is. best_changed: the share of tasks with several trajectories
    whose best one is another.
    """
    total = contributions.sum(axis=1)
    groups = [np.flatnonzero(tasks == task) for task in np.unique(tasks)]
    groups = [rows for rows in groups if len(rows) > 1]
    result = []
    for component in contributions.T:
        by_factor = []
        for factor in FACTORS:
            changed = total + (factor - 1) * component
            tau = kendalltau(total, changed).statistic
            other = [_best(changed[rows]) != _best(total[rows]) for rows in groups]
            by_factor.append(
                {
                    "factor": factor,
                    "tau": float(tau) if np.isfinite(tau) else 0.0,
                    "best_changed": float(np.mean(other)) if other else 0.0,
                }
            )
        result.append(by_factor)
    return result


def _best(values: Floats) -> int:
    """The first of those that are highest, but for rounding."""
    return int(np.flatnonzero(values >= values.max() - 1e-9)[0])


@dataclass(frozen=True)
class StepConflict:
    """A step at which two components pull apart: one adds, the other takes away. strength: the smaller of both, in
    standard deviations of what each adds to a step."""

    trajectory: int
    agent_step: int
    first: int
    second: int
    strength: float
    first_reward: float
    second_reward: float


@dataclass(frozen=True)
class PairConflict:
    """correlation: of what both add to a step; None where one adds the same everywhere. share: of the steps at which
    both are CLEAR standard deviations from their means, those at which they are on opposite sides. steps: the strongest
    of these."""

    first: int
    second: int
    correlation: float | None
    share: float
    steps: list[StepConflict]


def step_conflicts(by_trajectory: Sequence[Floats], *, most: int = 5) -> list[PairConflict]:
    """by_trajectory: [steps, components] each, what components add to steps. Pairs that disagree most first.

    A step is compared with the mean of its component over all steps: what a penalty takes from every step alike pulls
    nowhere.
    """
    if not by_trajectory:
        return []
    steps = np.concatenate(by_trajectory)
    trajectory = np.concatenate([np.full(len(rows), place) for place, rows in enumerate(by_trajectory)])
    number = np.concatenate([np.arange(len(rows)) for rows in by_trajectory])
    spread = steps.std(axis=0)
    standard = (steps - steps.mean(axis=0)) / np.where(spread > _EPSILON, spread, 1.0)
    standard[:, spread <= _EPSILON] = 0.0
    matrix = correlations(steps)
    found = []
    for first, second in combinations(range(steps.shape[1]), 2):
        a, b = standard[:, first], standard[:, second]
        both = (np.abs(a) >= CLEAR) & (np.abs(b) >= CLEAR)
        apart = both & (a * b < 0)
        strength = np.where(apart, np.minimum(np.abs(a), np.abs(b)), 0.0)
        order = np.argsort(-strength, kind="stable")[:most]
        found.append(
            PairConflict(
                first,
                second,
                matrix[first][second],
                float(apart.sum() / both.sum()) if both.any() else 0.0,
                [
                    StepConflict(
                        int(trajectory[row]),
                        int(number[row]),
                        first,
                        second,
                        float(strength[row]),
                        float(steps[row, first]),
                        float(steps[row, second]),
                    )
                    for row in order
                    if strength[row] > 0
                ],
            )
        )
    return sorted(found, key=lambda pair: (pair.correlation or 0.0, -pair.share))


def probe_gain(before: Floats, after: Floats, tasks: Ints) -> dict[str, Any]:
    """How much reward a change buys: the mean difference with its 95 % interval over tasks, and the share of
    trajectories whose reward it raises."""
    gained = after - before
    interval = task_bootstrap(lambda rows: float(gained[rows].mean()), tasks)
    return {
        "mean": float(gained.mean()),
        "low": interval[0] if interval else None,
        "high": interval[1] if interval else None,
        "raised": float((gained > 1e-9).mean()),
        "count": len(gained),
    }
