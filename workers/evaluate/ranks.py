"""Ranks, and what is measured by them, with weights so that a bootstrap is one multiplication."""

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
_ROUNDING = 1e-9  # of squared deviations of ranks, which are 1/2 or more where ranks vary


def ranks(values: Numbers) -> Numbers:
    """Ranks from 0, equal values sharing their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    mean: Numbers = (ends - counts + ends - 1) / 2
    return mean[place]


def spearman(first: Numbers, second: Numbers) -> float | None:
    """None where either does not vary."""
    first_ranks, second_ranks = ranks(first), ranks(second)
    if len(first_ranks) < 2 or first_ranks.std() == 0 or second_ranks.std() == 0:
        return None
    return float(np.corrcoef(first_ranks, second_ranks)[0, 1])


def spearman_draws(first: Numbers, second: Numbers, weights: Numbers) -> Numbers:
    """[draws]: `spearman` of the values as often as each is drawn; NaN where either does not vary.

    weights: [draws, n], whole numbers.
    """
    total = weights.sum(1)
    deviations = []
    for values in (first, second):
        drawn_ranks = _ranks_of_draws(values, weights)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = (weights * drawn_ranks).sum(1) / total
        deviations.append(drawn_ranks - mean[:, None])
    a, b = deviations
    products, squares = (weights * a * b).sum(1), (weights * a * a).sum(1) * (weights * b * b).sum(1)
    known = squares > _ROUNDING
    found: Numbers = np.where(known, products, np.nan) / np.sqrt(np.where(known, squares, 1))
    return found


def _ranks_of_draws(values: Numbers, weights: Numbers) -> Numbers:
    """[draws, n]: as `ranks`, among the values that were drawn."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    by_value = np.argsort(place, kind="stable")
    drawn = np.add.reduceat(weights[:, by_value], np.cumsum(counts) - counts, axis=1)
    found: Numbers = (np.cumsum(drawn, axis=1) - drawn + (drawn - 1) / 2)[:, place]
    return found


def auc(scores: Numbers, positive: NDArray[np.bool_], weights: Numbers) -> Numbers:
    """[draws]: the chance that a positive has more than a negative, ties one half. weights: [draws, n].

    NaN in a draw that has only one of them. Hanley & McNeil (1982).
    """
    _, place = np.unique(scores, return_inverse=True)
    levels = place.max() + 1
    at = np.zeros((2, len(weights), levels))
    for row, chosen in enumerate((~positive, positive)):
        one_hot = np.zeros((len(scores), levels))
        one_hot[np.arange(len(scores)), place] = chosen
        at[row] = weights @ one_hot
    negative, positives = at
    below = np.cumsum(negative, axis=1) - negative
    total = positives.sum(1) * negative.sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Numbers = (positives * (below + negative / 2)).sum(1) / np.where(total == 0, np.nan, total)
    return found
