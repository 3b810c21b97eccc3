"""Scores of trajectories to the probability that someone who comments on one mentions a side of a metric.

The log-odds of a side are those of how often it is mentioned, plus its standardized scores, times weights that all
sides share: a side with few points has too few to fit its own. So scores that tell nothing leave how often a side is
mentioned.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from workers.induce.step_features import DoubleArray

_MOST = 4.0  # standard deviations from the mean that a score counts
_PENALTY = 0.5  # on squared weights


@dataclass(frozen=True, slots=True)
class VerdictCalibration:
    """mean, scale: [sides, channels]. log_odds: [sides]. weights: [channels], none negative."""

    mean: DoubleArray
    scale: DoubleArray
    log_odds: DoubleArray
    weights: DoubleArray

    def __call__(self, scores: DoubleArray) -> DoubleArray:
        """scores: [trajectories, sides, channels], -inf where a side is not known. [trajectories, sides]."""
        logits = self.log_odds + _standardize(scores, self.mean, self.scale) @ self.weights
        found: DoubleArray = 1 / (1 + np.exp(-logits))
        return found


def fit_calibration(scores: DoubleArray, mentioned: NDArray[np.bool_]) -> VerdictCalibration:
    """scores: [trajectories, sides, channels], each of what is known without its own task. mentioned: [trajectories,
    sides]."""
    known = np.isfinite(scores)
    held = np.where(known, scores, 0.0)
    count = np.maximum(known.sum(axis=0), 1)
    mean = held.sum(axis=0) / count
    scale = np.sqrt((np.where(known, scores - mean, 0.0) ** 2).sum(axis=0) / count) + 1e-6
    share = (mentioned.sum(axis=0) + 1) / (len(mentioned) + 2)
    log_odds = np.log(share / (1 - share))
    x, y = _standardize(scores, mean, scale), mentioned.astype(float)
    rows = known.all(axis=2)

    def loss(parameters: DoubleArray) -> tuple[float, DoubleArray]:
        logits = (log_odds + parameters[0] + x @ parameters[1:])[rows]
        error = 1 / (1 + np.exp(-logits)) - y[rows]
        gradient = np.array([error.sum(), *(error @ x[rows])]) + 2 * _PENALTY * parameters
        value = (np.logaddexp(0, logits) - y[rows] * logits).sum() + _PENALTY * parameters @ parameters
        return float(value), gradient

    channels = scores.shape[2]
    bounds = [(None, None), *[(0.0, None)] * channels]
    found = minimize(loss, np.zeros(channels + 1), jac=True, bounds=bounds, method="L-BFGS-B").x
    return VerdictCalibration(mean, scale, log_odds + found[0], found[1:])


def _standardize(scores: DoubleArray, mean: DoubleArray, scale: DoubleArray) -> DoubleArray:
    found: DoubleArray = np.clip((scores - mean) / scale, -_MOST, _MOST)
    return found
