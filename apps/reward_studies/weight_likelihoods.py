"""How likely feedback is under a weighted sum of components: one class for each kind of feedback. Pure.

Each has the rows that the weights multiply and other parameters (an intercept, thresholds), and gives the mean loss
with its gradient. Rows have weights, so that a bootstrap over tasks needs no copies.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit
from scipy.stats import zscore

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FeedbackForm = Literal["comparisons", "outcomes", "ratings", "policy"]
MAX_LEVELS = 11  # of ratings that are taken as ordered levels; more are taken as numbers
_FLOOR = 1e-300


@dataclass(frozen=True)
class Likelihood(ABC):
    """rows: [n, components]; of comparisons, differences. target: [n]. tasks: [n], numbered from 0."""

    rows: Floats
    target: Floats
    tasks: Ints

    @property
    def other_parameters(self) -> int:
        return 0

    def first_other(self) -> Floats:
        """Where the search for the other parameters begins."""
        return np.zeros(self.other_parameters)

    @abstractmethod
    def loss(self, scores: Floats, other: Floats, row_weights: Floats) -> tuple[float, Floats, Floats]:
        """Weighted mean loss; its gradient by score, [n]; by other parameter.

        scores: [n], rows @ weights. row_weights: [n], at least 0.
        """

    def subset(self, chosen: NDArray[np.bool_]) -> "Likelihood":
        return type(self)(self.rows[chosen], self.target[chosen], self.tasks[chosen])


class Comparisons(Likelihood):
    """Bradley-Terry: P(first is better) = sigmoid(score). target: 1, 0, or 1/2 for a tie."""

    def loss(self, scores: Floats, other: Floats, row_weights: Floats) -> tuple[float, Floats, Floats]:
        loss, by_score = _logistic(scores, self.target, row_weights)
        return loss, by_score, np.empty(0)


class Outcomes(Likelihood):
    """Logistic regression: P(success) = sigmoid(intercept + score). target: 0 or 1."""

    @property
    def other_parameters(self) -> int:
        return 1

    def loss(self, scores: Floats, other: Floats, row_weights: Floats) -> tuple[float, Floats, Floats]:
        loss, by_score = _logistic(scores + other[0], self.target, row_weights)
        return loss, by_score, np.array([by_score.sum()])


class OrderedLevels(Likelihood):
    """Proportional odds (McCullagh 1980): P(level <= k) = sigmoid(threshold_k - score). target: 0, 1, ..., levels - 1.

    other: the first threshold, and the logarithms of the distances to the next ones.
    """

    @property
    def other_parameters(self) -> int:
        return int(self.target.max())

    def first_other(self) -> Floats:
        levels = np.arange(self.other_parameters)
        shares = np.clip([(self.target <= level).mean() for level in levels], 0.01, 0.99)
        thresholds = np.log(shares / (1 - shares))
        return np.concatenate([thresholds[:1], np.log(np.maximum(np.diff(thresholds), 0.05))])

    def loss(self, scores: Floats, other: Floats, row_weights: Floats) -> tuple[float, Floats, Floats]:
        distances = np.exp(other[1:])
        thresholds = np.concatenate(
            [[-np.inf], other[0] + np.concatenate([[0.0], np.cumsum(distances)]), [np.inf]]
        )
        level = np.minimum(self.target.astype(int), len(other))
        below = expit(thresholds[level] - scores)
        up_to = expit(thresholds[level + 1] - scores)
        chance = np.maximum(up_to - below, _FLOOR)
        weights = row_weights / row_weights.sum()
        # d log P / d score = sigmoid(upper) + sigmoid(lower) - 1
        by_score = -weights * (up_to + below - 1)
        by_upper, by_lower = -weights * up_to * (1 - up_to) / chance, weights * below * (1 - below) / chance
        by_threshold = np.zeros(len(other) + 2)
        np.add.at(by_threshold, level + 1, by_upper)
        np.add.at(by_threshold, level, by_lower)
        inner = by_threshold[1:-1]
        after = np.cumsum(inner[::-1])[::-1]  # a distance moves all thresholds after it
        by_other = np.concatenate([after[:1], after[1:] * distances])
        return float(-(weights * np.log(chance)).sum()), by_score, by_other


class Numbers(Likelihood):
    """Least squares: target = intercept + score, in units of the target's standard deviation."""

    @property
    def other_parameters(self) -> int:
        return 1

    def loss(self, scores: Floats, other: Floats, row_weights: Floats) -> tuple[float, Floats, Floats]:
        weights = row_weights / row_weights.sum()
        error = scores + other[0] - self.target
        by_score = weights * error
        return float(0.5 * (weights * error**2).sum()), by_score, np.array([by_score.sum()])


class PolicyOutcomes(Likelihood):
    """The outcome of the policy that the reward makes, as in bi-level reward optimisation (BARFI, arXiv 2310.19007).

    Among the trajectories of a task, the policy that maximises E[reward] - KL to uniform is softmax(score), in closed
    form; its implicit gradient is a covariance. loss: minus the mean over tasks of that policy's outcome. target: the
    outcome, in any unit.
    """

    def loss(self, scores: Floats, other: Floats, row_weights: Floats) -> tuple[float, Floats, Floats]:
        count = int(self.tasks.max()) + 1
        highest = np.full(count, -np.inf)
        np.maximum.at(highest, self.tasks, scores)
        chance = np.exp(scores - highest[self.tasks])
        chance /= np.bincount(self.tasks, chance, count)[self.tasks]
        expected = np.bincount(self.tasks, chance * self.target, count)
        # Rows of a task have one weight: that of the task.
        task_weights = np.zeros(count)
        task_weights[self.tasks] = row_weights
        task_weights /= task_weights.sum()
        by_score = -task_weights[self.tasks] * chance * (self.target - expected[self.tasks])
        return float(-(task_weights * expected).sum()), by_score, np.empty(0)


def likelihood_of(form: FeedbackForm, rows: Floats, target: Floats, tasks: Ints) -> Likelihood:
    """The class for a kind of feedback. Ratings of up to MAX_LEVELS distinct values are levels, others numbers."""
    if form == "comparisons":
        return Comparisons(rows, target, tasks)
    if form == "outcomes":
        return Outcomes(rows, target, tasks)
    if form == "policy":
        return PolicyOutcomes(rows, target, tasks)
    levels = np.unique(target)
    if len(levels) <= MAX_LEVELS:
        return OrderedLevels(rows, np.searchsorted(levels, target).astype(float), tasks)
    return Numbers(rows, zscore(target), tasks)


def _logistic(scores: Floats, target: Floats, row_weights: Floats) -> tuple[float, Floats]:
    weights = row_weights / row_weights.sum()
    loss = -(weights * (target * log_expit(scores) + (1 - target) * log_expit(-scores))).sum()
    return float(loss), weights * (expit(scores) - target)
