"""The chance that an agent succeeds at a task, with its uncertainty, for tasks that were tried and for tasks that were
not.

The log-odds of tasks are a Gaussian process: what all tasks share, a part that similar texts share, and a part of each
task alone. Outcomes are binomial; the posterior is Laplace's approximation (Rasmussen and Williams 2006, algorithms 3.1
and 3.2), and the variances of the parts are those with the largest marginal likelihood. With no text in common this is
a hierarchical logistic model with a shared strength; with text it predicts tasks that no one has tried, as model
predictive task sampling does (Qu et al. 2025, arXiv 2501.11039).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import expit

from workers.errors import RewardError
from workers.task_difficulty.text_similarity import TextVectors

Numbers = NDArray[np.float64]
MOST_FITTED = 1000  # tasks that are fitted together; those with most outcomes
_MOST_TUNED = 250  # tasks that the variances are chosen on
_SHARED_VARIANCE = 4.0  # of the log-odds that all tasks have in common
_TEXT_VARIANCES = (0.0, 0.3, 1.0, 3.0, 10.0)
_OWN_VARIANCES = (0.03, 0.1, 0.3, 1.0, 3.0)
_NEWTON_STEPS = 50
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()
NINETY_PERCENT = 1.6449  # standard deviations to either side


@dataclass(frozen=True, slots=True)
class TaskOutcomes:
    """text: what the agent was asked. trials: outcomes that are known. successes: how many succeeded, or the sum of
    their rewards in [0, 1]."""

    text: str
    trials: float = 0.0
    successes: float = 0.0


@dataclass(frozen=True, slots=True)
class SuccessEstimate:
    """success: the expected chance. low, high: of 90 %. learnability: the expected variance of an outcome, at most
    0.25: the part of a group of samples that a group-relative trainer learns from."""

    success: float
    low: float
    high: float
    learnability: float

    @property
    def difficulty(self) -> float:
        return 1 - self.success


@dataclass(frozen=True)
class SuccessModel:
    """Fitted. text_variance, own_variance: of the log-odds, those chosen. log_likelihood: the marginal one, of the
    tasks that they were chosen on."""

    vectors: TextVectors
    fitted: Any  # sparse [fitted tasks, columns]
    gradient: Numbers  # [fitted tasks]: of the log-likelihood at the mode
    root_weights: Numbers  # [fitted tasks]
    factor: Numbers  # [fitted, fitted]: Cholesky factor of I + sqrt(W) K sqrt(W)
    text_variance: float
    own_variance: float
    log_likelihood: float

    def predict(self, tasks: Sequence[TaskOutcomes]) -> list[SuccessEstimate]:
        """As new tasks: their texts count, and their outcomes as if they came after those of the fit."""
        if not tasks:
            return []
        covariance = _text_part(
            self.vectors.read([task.text for task in tasks]), self.fitted, self.text_variance
        )
        means = covariance @ self.gradient
        reduced = solve_triangular(self.factor, (covariance * self.root_weights).T, lower=True)
        prior = _SHARED_VARIANCE + self.text_variance + self.own_variance
        variances = np.maximum(prior - (reduced**2).sum(axis=0), 1e-9)
        for place, task in enumerate(tasks):
            if task.trials:
                means[place], variances[place] = _updated(means[place], variances[place], task)
        return _estimates(means, variances)


def fit_success_model(tasks: Sequence[TaskOutcomes]) -> tuple[SuccessModel, list[SuccessEstimate]]:
    """The model, and the estimates of these tasks in their order. Tasks without outcomes are predicted. Raises
    RewardError where no outcome is known."""
    _require_outcomes(tasks)
    by_trials = sorted(range(len(tasks)), key=lambda place: (-tasks[place].trials, place))
    tried = [place for place in by_trials if tasks[place].trials][:MOST_FITTED]
    chosen = [tasks[place] for place in tried]
    vectors = TextVectors([task.text for task in tasks])
    rows = vectors.read([task.text for task in chosen])
    trials = np.array([task.trials for task in chosen])
    successes = np.array([task.successes for task in chosen])
    tuned = np.unique(np.linspace(0, len(chosen) - 1, min(len(chosen), _MOST_TUNED)).astype(int))
    similarity = (rows[tuned] @ rows[tuned].T).toarray()
    best = max(
        product(_TEXT_VARIANCES, _OWN_VARIANCES),
        key=lambda pair: _mode(_kernel(similarity, *pair), trials[tuned], successes[tuned])[-1],
    )
    likelihood = _mode(_kernel(similarity, *best), trials[tuned], successes[tuned])[-1]
    kernel = _kernel((rows @ rows.T).toarray(), *best)
    mode, gradient, root_weights, factor, _ = _mode(kernel, trials, successes)
    model = SuccessModel(vectors, rows, gradient, root_weights, factor, *best, likelihood)
    reduced = solve_triangular(factor, root_weights[:, None] * kernel, lower=True)
    variances = np.maximum(np.diag(kernel) - (reduced**2).sum(axis=0), 1e-9)
    found: dict[int, SuccessEstimate] = dict(zip(tried, _estimates(mode, variances), strict=True))
    others = [place for place in range(len(tasks)) if place not in found]
    found |= dict(zip(others, model.predict([tasks[place] for place in others]), strict=True))
    return model, [found[place] for place in range(len(tasks))]


def _require_outcomes(tasks: Sequence[TaskOutcomes]) -> None:
    for task in tasks:
        if not 0 <= task.successes <= task.trials:
            raise RewardError(
                f"{task.successes:g} successes of {task.trials:g} trials; there can be 0 to that."
            )
    if not any(task.trials for task in tasks):
        raise RewardError(
            "no outcome of these tasks is known; import trajectories with a success or a reward first."
        )


def _text_part(left: Any, right: Any, variance: float) -> Numbers:
    shared: Numbers = variance * (left @ right.T).toarray() + _SHARED_VARIANCE
    return shared


def _kernel(similarity: Numbers, text_variance: float, own_variance: float) -> Numbers:
    return text_variance * similarity + _SHARED_VARIANCE + own_variance * np.eye(len(similarity))


def _mode(
    kernel: Numbers, trials: Numbers, successes: Numbers
) -> tuple[Numbers, Numbers, Numbers, Numbers, float]:
    """The mode of the log-odds, the gradient there, the roots of the weights, the factor, and Laplace's log marginal
    likelihood (without the binomial coefficients, which are the same for every kernel)."""
    log_odds = np.zeros(len(trials))
    objective = -np.inf
    weighted = np.zeros(len(trials))
    for _ in range(_NEWTON_STEPS):
        chance = expit(log_odds)
        weights = np.maximum(trials * chance * (1 - chance), 1e-10)
        roots = np.sqrt(weights)
        factor = _factor(kernel, roots)
        step = weights * log_odds + successes - trials * chance
        weighted = step - roots * cho_solve((factor, True), roots * (kernel @ step))
        log_odds = kernel @ weighted
        value = float(-0.5 * weighted @ log_odds + _log_likelihood(log_odds, trials, successes))
        if value - objective < 1e-8:
            break
        objective = value
    chance = expit(log_odds)
    roots = np.sqrt(np.maximum(trials * chance * (1 - chance), 1e-10))
    factor = _factor(kernel, roots)
    marginal = value - float(np.log(np.diag(factor)).sum())
    return log_odds, successes - trials * chance, roots, factor, marginal


def _factor(kernel: Numbers, roots: Numbers) -> Numbers:
    factor: Numbers = cholesky(np.eye(len(roots)) + roots[:, None] * kernel * roots, lower=True)
    return factor


def _log_likelihood(log_odds: Numbers, trials: Numbers, successes: Numbers) -> float:
    return float((successes * log_odds - trials * np.logaddexp(0, log_odds)).sum())


def _updated(mean: float, variance: float, task: TaskOutcomes) -> tuple[float, float]:
    """A task's prior after its own outcomes, by the same approximation in one dimension."""
    log_odds = mean
    for _ in range(_NEWTON_STEPS):
        chance = float(expit(log_odds))
        slope = task.successes - task.trials * chance - (log_odds - mean) / variance
        step = slope / (task.trials * chance * (1 - chance) + 1 / variance)
        log_odds += min(max(step, -2.0), 2.0)  # a longer one may leave where the curve is steep
        if abs(step) < 1e-8:
            break
    chance = float(expit(log_odds))
    return log_odds, 1 / (1 / variance + task.trials * chance * (1 - chance))


def _estimates(means: Numbers, variances: Numbers) -> list[SuccessEstimate]:
    spreads = np.sqrt(variances)
    chances = expit(means[:, None] + spreads[:, None] * _NODES)
    success = chances @ _NODE_WEIGHTS
    learnability = (chances * (1 - chances)) @ _NODE_WEIGHTS
    low, high = expit(means - NINETY_PERCENT * spreads), expit(means + NINETY_PERCENT * spreads)
    return [SuccessEstimate(*map(float, row)) for row in zip(success, low, high, learnability, strict=True)]
