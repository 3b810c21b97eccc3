"""Ranks, and what is measured by them, with weights so that a bootstrap is one multiplication."""

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


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
