"""How accuracy grows with labels, and how many are still needed for a wished one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.active_learning.posterior import Numbers, fit

FOLDS = 5
HALVINGS = 4  # sizes measured below the whole: a half, a quarter, ...
FEWEST = 10  # comparisons in the smallest size
DRAWS = 200
_RATES = np.linspace(0.1, 1.5, 29)
_FARTHEST = 100.0  # times what there is: beyond that a curve tells nothing


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """accuracy: on comparisons of tasks that were left out, when heads are fitted to `labels` comparisons; 95 %."""

    labels: int
    accuracy: float
    interval: list[float]


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """accuracy(n) = best - drop n^-rate: the inverse power law, Figueroa et al. (2012), eq. 1.

    points: measured. needed: labels in all for `wanted`, None where the curve never gets there; interval: 80 %, an
    end None where that many draws never do.
    """

    points: list[CurvePoint]
    best: float
    drop: float
    rate: float
    wanted: float | None
    needed: int | None
    interval: list[int | None] | None


def learning_curve(
    differences: Numbers, preferred: Numbers, tasks: Sequence[str], *, wanted: float | None, seed: int
) -> LearningCurve | None:
    """From comparisons: [n, d], [n] as in `fit`, and the task of each. None where there are too few for a curve.

    Folds are by task; a size is a draw of the training comparisons, the smaller ones within the larger.
    """
    names = list(dict.fromkeys(tasks))
    place = np.array([names.index(task) for task in tasks])
    sizes = _sizes(len(preferred))
    if len(sizes) < 3 or len(names) < FOLDS:
        return None
    right = _right(differences, preferred, place, sizes, seed)
    strict = np.isfinite(right[0])
    if not strict.any():
        return None
    drawn = _drawn(right[:, strict], place[strict], seed)
    means = right[:, strict].mean(1)
    points = [
        CurvePoint(size, float(mean), [float(bound) for bound in np.nanquantile(row, [0.025, 0.975])])
        for size, mean, row in zip(sizes, means, drawn.T, strict=True)
    ]
    best, drop, rate = _power_law(sizes, means)
    needed = None if wanted is None else _needed(best, drop, rate, wanted, sizes[-1])
    spread = None
    if wanted is not None:
        each = [_needed(*_power_law(sizes, row), wanted, sizes[-1]) for row in drawn[:DRAWS]]
        counts = np.array([np.inf if count is None else count for count in each])
        low, high = np.quantile(counts, [0.1, 0.9], method="nearest")
        spread = [None if np.isinf(bound) else int(bound) for bound in (low, high)]
    return LearningCurve(points, best, drop, rate, wanted, needed, spread)


def _sizes(labels: int) -> list[int]:
    whole = labels * (FOLDS - 1) // FOLDS
    found = [whole // 2**power for power in range(HALVINGS, -1, -1)]
    return [size for size in found if size >= FEWEST]


def _right(
    differences: Numbers, preferred: Numbers, place: NDArray[np.int64], sizes: Sequence[int], seed: int
) -> Numbers:
    """[sizes, n]: whether heads that saw nothing of its task get a comparison right; NaN for ties."""
    dice = np.random.default_rng(seed)
    fold = dice.permutation(place.max() + 1)[place] % FOLDS
    order = dice.permutation(len(preferred))
    found = np.full((len(sizes), len(preferred)), np.nan)
    for each in range(FOLDS):
        train, test = order[fold[order] != each], np.flatnonzero((fold == each) & (preferred != 0.5))
        if not len(test) or not len(train):
            continue
        for row, size in enumerate(sizes):
            some = train[: max(1, round(len(train) * size / sizes[-1]))]
            margin = fit(differences[some], preferred[some], variances=(1.0, 10.0)).margin(differences[test])
            found[row, test] = np.where(margin == 0, 0.5, (margin > 0) == (preferred[test] > 0.5))
    return found


def _drawn(right: Numbers, place: NDArray[np.int64], seed: int) -> Numbers:
    """[draws, sizes]: the accuracies when whole tasks are drawn."""
    tasks, at = np.unique(place, return_inverse=True)
    sums = np.array([np.bincount(at, weights=row, minlength=len(tasks)) for row in right])
    counts = np.bincount(at, minlength=len(tasks)).astype(float)
    drawn = np.random.default_rng(seed).multinomial(
        len(tasks), np.full(len(tasks), 1 / len(tasks)), size=DRAWS
    )
    return (drawn @ sums.T) / (drawn @ counts)[:, None]


def _power_law(sizes: Sequence[int], accuracy: Numbers) -> tuple[float, float, float]:
    """(best, drop, rate) of least squares, larger sizes counting more; a curve never falls, and ends at 1 at most."""
    n, weights = np.array(sizes, dtype=float), np.sqrt(np.array(sizes, dtype=float))
    found, least = (float(accuracy[-1]), 0.0, 1.0), math.inf
    for rate in _RATES:
        terms = n**-rate
        mean, mean_term = np.average(accuracy, weights=weights), np.average(terms, weights=weights)
        spread = float((weights * (terms - mean_term) ** 2).sum())
        drop = max(0.0, -float((weights * (terms - mean_term) * (accuracy - mean)).sum()) / spread)
        best = min(1.0, mean + drop * mean_term)
        if best == 1.0:
            drop = max(0.0, float((weights * terms * (1.0 - accuracy)).sum() / (weights * terms**2).sum()))
        error = float((weights * (accuracy - best + drop * terms) ** 2).sum())
        if error < least:
            found, least = (float(best), drop, float(rate)), error
    return found


def _needed(best: float, drop: float, rate: float, wanted: float, most: int) -> int | None:
    if best - drop * most**-rate >= wanted and drop == 0:
        return most
    if wanted >= best or drop == 0:
        return None
    labels = (drop / (best - wanted)) ** (1 / rate)
    return None if labels > _FARTHEST * most else math.ceil(labels)
