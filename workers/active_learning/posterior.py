"""Bradley-Terry with a linear head on the states of a backbone, and how sure it can be: a Gaussian posterior over it.

The backbone stays as it is, so a head for every label that comes is a matter of milliseconds, and as many heads as one
likes can be drawn from the posterior; what is computed here is what infinitely many would say.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
PRIOR_VARIANCES = (0.3, 1.0, 3.0, 10.0, 30.0)
_STEPS = 50
_ENOUGH = 1e-8


@dataclass(frozen=True, slots=True)
class Posterior:
    """Of the head w. mean: [d]. covariance: [d, d]. variance: of the prior, each of w's numbers alone.

    evidence: log of the marginal likelihood of what it was fitted to, by Laplace's method.
    """

    mean: Numbers
    covariance: Numbers
    variance: float
    evidence: float

    def margin(self, differences: Numbers) -> Numbers:
        """[n] of [n, d]: by how much the first of two is expected to be better, in logits."""
        return differences @ self.mean

    def spread(self, differences: Numbers) -> Numbers:
        """[n]: the standard deviation of that over heads, in logits."""
        squares = np.einsum("nd,nd->n", differences @ self.covariance, differences)
        return np.sqrt(np.maximum(squares, 0.0))


def fit(
    differences: Numbers,
    preferred: Numbers,
    *,
    weights: Numbers | None = None,
    start: Numbers | None = None,
    variances: Sequence[float] = PRIOR_VARIANCES,
) -> Posterior:
    """Laplace's approximation of p(w | comparisons), w ~ N(0, variance I), the variance of the highest evidence.

    differences: [n, d], features of the first less those of the second. preferred: [n], 1 where the first was chosen,
    0 where the second was, 0.5 for a tie. weights: [n], how much each counts. start: [d], to begin at: the mean of
    before. MacKay (1992), "The Evidence Framework Applied to Classification Networks"; on the last layer of a network:
    Kristiadi et al. (arXiv 2002.10118).
    """
    counted = np.ones(len(preferred)) if weights is None else weights
    found = None
    for variance in variances:
        fit = _fit(differences, preferred, counted, variance, start)
        start = fit.mean
        if found is None or fit.evidence > found.evidence:
            found = fit
    if found is None:
        raise ValueError("there is no prior variance to choose from")
    return found


def _fit(
    differences: Numbers, preferred: Numbers, weights: Numbers, variance: float, start: Numbers | None
) -> Posterior:
    width = differences.shape[1]
    mean = np.zeros(width) if start is None else start.copy()
    objective = _objective(differences, preferred, weights, variance, mean)
    precision = np.eye(width) / variance
    for _ in range(_STEPS):
        chance = sigmoid(differences @ mean)
        gradient = differences.T @ (weights * (chance - preferred)) + mean / variance
        precision = (differences.T * (weights * chance * (1 - chance))) @ differences + np.eye(
            width
        ) / variance
        step = np.linalg.solve(precision, gradient)
        if (drop := float(gradient @ step)) < _ENOUGH:
            break
        # The loss is convex, but a full Newton step may go too far where it is nearly flat.
        length = 1.0
        while True:
            new = _objective(differences, preferred, weights, variance, mean - length * step)
            if new <= objective - 1e-4 * length * drop or length < 1e-6:
                break
            length /= 2
        mean, objective = mean - length * step, new
    covariance = np.linalg.inv(precision)
    _, log_precision = np.linalg.slogdet(precision)
    evidence = -objective - 0.5 * width * np.log(variance) - 0.5 * log_precision
    return Posterior(mean, (covariance + covariance.T) / 2, variance, float(evidence))


def _objective(
    differences: Numbers, preferred: Numbers, weights: Numbers, variance: float, mean: Numbers
) -> float:
    """-log p(comparisons | w) - log p(w), without what does not depend on w."""
    margin = differences @ mean
    loss = np.logaddexp(0, -margin) * preferred + np.logaddexp(0, margin) * (1 - preferred)
    return float(weights @ loss + mean @ mean / (2 * variance))


def sigmoid(margin: Numbers) -> Numbers:
    return np.exp(-np.logaddexp(0, -margin))
