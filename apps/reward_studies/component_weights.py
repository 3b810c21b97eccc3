"""Weights of components, fitted to feedback: L1 or L2, strength by cross-validation, bootstrap over tasks. Pure.

Behavior Alignment via Reward Function Optimization (arXiv 2310.19007) fits the weights of a designer's components so
that a bad one does no harm; here the outer objective is the likelihood of feedback, or the outcome of the policy
(`weight_likelihoods.PolicyOutcomes`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from apps.reward_studies.weight_likelihoods import Floats, Ints, Likelihood

Penalty = Literal["l1", "l2"]
PENALTIES: tuple[Penalty, ...] = ("l1", "l2")
FOLDS = 5
PATH_LENGTH = 15
PATH_RATIO = 1e-3  # the weakest penalty, of the one that leaves no weight
RESAMPLES = 200
_NEGLIGIBLE = 1e-6  # a standardised weight below it is 0


@dataclass(frozen=True)
class FittedWeights:
    """weights: [components], for standardised components. other: of the likelihood. strength: of the penalty."""

    weights: Floats
    other: Floats
    strength: float


@dataclass(frozen=True)
class WeightPath:
    """By strength, the strongest penalty first. held_out_loss, error: mean over folds and its standard error.

    chosen: the strongest penalty within one standard error of the lowest loss (Breiman et al. 1984), so that a
    component that may as well be left out is left out.
    """

    fits: list[FittedWeights]
    held_out_loss: list[float]
    error: list[float]
    chosen: int

    @property
    def best(self) -> FittedWeights:
        return self.fits[self.chosen]


def fit_weights(
    likelihood: Likelihood,
    strength: float,
    *,
    penalty: Penalty = "l1",
    allow_negative: bool = False,
    start: FittedWeights | None = None,
    row_weights: Floats | None = None,
) -> FittedWeights:
    """Minimise mean loss + strength * |w|_1, or + strength / 2 * |w|_2^2. Rows are standardised by the caller.

    allow_negative: without it, weights are at least 0: a component that pulls against the feedback is left out.
    """
    count = likelihood.rows.shape[1]
    given = np.ones(len(likelihood.target)) if row_weights is None else row_weights
    sides = 2 if allow_negative else 1  # w = up - down, both at least 0, which makes |w|_1 smooth

    def value(parameters: Floats) -> tuple[float, Floats]:
        parts = parameters[: sides * count].reshape(sides, count)
        weights = parts[0] - parts[1] if allow_negative else parts[0]
        loss, by_score, by_other = likelihood.loss(
            likelihood.rows @ weights, parameters[sides * count :], given
        )
        by_weight = likelihood.rows.T @ by_score
        if penalty == "l2":
            loss += strength / 2 * float(weights @ weights)
            by_weight = by_weight + strength * weights
            l1 = 1e-9  # keeps one side of each weight at 0
        else:
            l1 = strength
        loss += l1 * float(parts.sum())
        by_part = np.stack([by_weight, -by_weight][:sides]) + l1
        return loss, np.concatenate([by_part.ravel(), by_other])

    first = np.zeros(sides * count + likelihood.other_parameters)
    if start is not None and len(start.other) == likelihood.other_parameters:
        first[:count] = np.maximum(start.weights, 0)
        if allow_negative:
            first[count : 2 * count] = np.maximum(-start.weights, 0)
        first[sides * count :] = start.other
    else:
        first[sides * count :] = likelihood.first_other()
        # Softmax has no gradient to follow from a far start, but has one at 0; the others are convex.
    bounds = [(0.0, None)] * (sides * count) + [(None, None)] * likelihood.other_parameters
    found = minimize(
        value, first, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 500, "ftol": 1e-10}
    ).x
    parts = found[: sides * count].reshape(sides, count)
    weights = parts[0] - parts[1] if allow_negative else parts[0]
    weights = np.where(np.abs(weights) < _NEGLIGIBLE, 0.0, weights)
    return FittedWeights(weights, found[sides * count :], strength)


def strengths(likelihood: Likelihood, *, penalty: Penalty, allow_negative: bool) -> Floats:
    """PATH_LENGTH strengths, from the one that leaves no weight (L1), else the largest gradient, downwards."""
    empty = fit_weights(likelihood, 1e6, penalty=penalty, allow_negative=allow_negative)
    zeros = np.zeros(likelihood.rows.shape[1])
    _, by_score, _ = likelihood.loss(likelihood.rows @ zeros, empty.other, np.ones(len(likelihood.target)))
    gradient = -likelihood.rows.T @ by_score
    highest = float(np.abs(gradient).max() if allow_negative else gradient.max())
    highest = max(highest, 1e-6)
    factor = 10.0 if penalty == "l2" else 1.0  # L2 only shrinks
    return np.geomspace(highest * factor, highest * PATH_RATIO, PATH_LENGTH)


def fit_path(
    likelihood: Likelihood, folds: Ints, *, penalty: Penalty = "l1", allow_negative: bool = False
) -> WeightPath:
    """folds: of each row; rows of a task are in one fold."""
    options = {"penalty": penalty, "allow_negative": allow_negative}
    grid = strengths(likelihood, **options)  # type: ignore[arg-type]
    fits = _fits(likelihood, grid, penalty, allow_negative)
    losses = []
    for fold in np.unique(folds):
        held = likelihood.subset(folds == fold)
        trained = _fits(likelihood.subset(folds != fold), grid, penalty, allow_negative)
        ones = np.ones(len(held.target))
        losses.append([held.loss(held.rows @ fit.weights, fit.other, ones)[0] for fit in trained])
    by_strength = np.array(losses)  # [folds, strengths]
    mean = by_strength.mean(axis=0)
    error = by_strength.std(axis=0, ddof=1) / np.sqrt(len(losses)) if len(losses) > 1 else np.zeros(len(grid))
    lowest = int(mean.argmin())
    # Folds differ in how hard they are; what counts is how the difference to the best strength varies.
    differences = by_strength - by_strength[:, [lowest]]
    spread = differences.std(axis=0, ddof=1) / np.sqrt(len(losses)) if len(losses) > 1 else error
    within = mean - mean[lowest] <= spread
    chosen = int(np.argmax(within | (np.arange(len(grid)) == lowest)))
    return WeightPath(fits, mean.tolist(), error.tolist(), chosen)


def _fits(
    likelihood: Likelihood, grid: Floats, penalty: Penalty, allow_negative: bool
) -> list[FittedWeights]:
    fits: list[FittedWeights] = []
    for strength in grid:
        start = fits[-1] if fits else None
        fits.append(
            fit_weights(
                likelihood, float(strength), penalty=penalty, allow_negative=allow_negative, start=start
            )
        )
    return fits


def bootstrap_weights(
    likelihood: Likelihood,
    fit: FittedWeights,
    *,
    penalty: Penalty,
    allow_negative: bool,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Floats:
    """[resamples, components]: fits at the same strength to tasks drawn with replacement."""
    random = np.random.default_rng(seed)
    count = int(likelihood.tasks.max()) + 1
    found = []
    for _ in range(resamples):
        drawn = np.bincount(random.integers(0, count, count), minlength=count).astype(float)
        weights = drawn[likelihood.tasks]
        if not weights.any():
            continue
        again = fit_weights(
            likelihood,
            fit.strength,
            penalty=penalty,
            allow_negative=allow_negative,
            start=fit,
            row_weights=weights,
        )
        found.append(again.weights)
    return np.array(found)


@dataclass(frozen=True)
class SelectedWeights:
    """fit: of the components that are kept; the others have the weight 0. draws: [resamples, components], of all."""

    fit: FittedWeights
    path: WeightPath
    draws: Floats


def select_weights(
    likelihood: Likelihood,
    folds: Ints,
    *,
    penalty: Penalty = "l1",
    allow_negative: bool = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> SelectedWeights:
    """Strength by cross-validation; then components whose 95 % interval has 0 in it are left out, and the others fitted
    again. Where no interval is clear of 0, nothing is left out: the feedback does not tell which matter."""
    options: Any = {"penalty": penalty, "allow_negative": allow_negative}
    path = fit_path(likelihood, folds, **options)
    draws = bootstrap_weights(likelihood, path.best, **options, resamples=resamples, seed=seed)
    low, high = np.percentile(draws, [2.5, 97.5], axis=0)
    is_kept = (low > 0) | (high < 0)
    if is_kept.all() or not is_kept.any():
        return SelectedWeights(path.best, path, draws)
    kept = replace(likelihood, rows=likelihood.rows * is_kept)
    fit = fit_weights(kept, path.best.strength, **options, start=path.best)
    return SelectedWeights(replace(fit, weights=fit.weights * is_kept), path, draws)


def held_out_fits(
    likelihood: Likelihood, folds: Ints, *, penalty: Penalty, allow_negative: bool
) -> dict[int, FittedWeights]:
    """By fold, what is selected by the other folds alone."""
    return {
        int(fold): select_weights(
            likelihood.subset(folds != fold),
            folds[folds != fold],
            penalty=penalty,
            allow_negative=allow_negative,
            resamples=RESAMPLES // 2,
        ).fit
        for fold in np.unique(folds)
    }


@dataclass(frozen=True)
class OrderedPairs:
    """Pairs of trajectories of which feedback puts the first above the second. first, second: rows of values; tasks: of
    both; fold: pairs across folds are left out, since their scores are by different weights."""

    first: Ints
    second: Ints
    first_task: Ints
    second_task: Ints
    fold: Ints

    def accuracy(self, by_fold: Sequence[Floats] | Floats, drawn: Floats | None = None) -> float:
        """The share of pairs in the order of the scores; equal scores count one half.

        by_fold: [folds, trajectories], or [trajectories] for the same scores in all. drawn: how often a task counts.
        """
        scores = np.asarray(by_fold)
        if scores.ndim == 1:
            difference = scores[self.first] - scores[self.second]
        else:
            difference = scores[self.fold, self.first] - scores[self.fold, self.second]
        right = np.where(np.abs(difference) < 1e-12, 0.5, difference > 0)
        if drawn is None:
            return float(right.mean())
        weights = drawn[self.first_task]
        # A pair across two tasks counts as often as both were drawn, one within a task as often as that was.
        weights = np.where(self.first_task == self.second_task, weights, weights * drawn[self.second_task])
        return float((weights * right).sum() / weights.sum()) if weights.any() else float("nan")

    def interval(
        self, by_fold: Sequence[Floats] | Floats, *, resamples: int = RESAMPLES, seed: int = 0
    ) -> tuple[float, float]:
        """95 %, by a bootstrap over tasks."""
        random = np.random.default_rng(seed)
        count = int(max(self.first_task.max(), self.second_task.max())) + 1
        values = [
            self.accuracy(
                by_fold, np.bincount(random.integers(0, count, count), minlength=count).astype(float)
            )
            for _ in range(resamples)
        ]
        low, high = np.nanpercentile(values, [2.5, 97.5])
        return float(low), float(high)

    def subset(self, chosen: NDArray[np.bool_]) -> "OrderedPairs":
        return replace(self, **{name: getattr(self, name)[chosen] for name in self.__dataclass_fields__})
