"""Temperature scaling, log loss and expected calibration error of preference probabilities."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_BINS = 10


def log_loss(margins: NDArray[np.float64]) -> float:
    """Mean of -log s(margin); margin: raw reward of the preferred one minus that of the other."""
    return float(np.logaddexp(0.0, -margins).mean())


def fit_temperature(margins: Sequence[float]) -> float:
    """The T that minimises the log loss of margins / T (Guo et al. 2017, section 4.2), within 1/50..50.

    The loss is convex in 1/T, so a golden-section search over it finds the minimum. 1 for fewer than ten margins.
    """
    if len(margins) < 10:
        return 1.0
    values = np.asarray(margins, dtype=float)
    low, high, golden = 1 / 50, 50.0, (5**0.5 - 1) / 2
    for _ in range(80):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if log_loss(values * left) < log_loss(values * right):
            high = right
        else:
            low = left
    return 2 / (low + high)


def expected_calibration_error(margins: Sequence[float], temperature: float) -> float:
    """ECE with ten equal bins of confidence max(p, 1 - p) in 0.5..1 (Naeini et al. 2015).

    Right is a positive margin; a margin of 0 is half right.
    """
    curve = reliability_curve(margins, temperature)
    return sum(n * abs(confidence - right) for confidence, right, n in curve) / len(margins)


def reliability_curve(margins: Sequence[float], temperature: float) -> list[tuple[float, float, int]]:
    """(mean confidence, share right, n) of every bin that is not empty; the bins are those of the ECE."""
    scaled = np.asarray(margins, dtype=float) / temperature
    confidence = 1 / (1 + np.exp(-np.abs(scaled)))
    right = np.where(scaled > 0, 1.0, np.where(scaled < 0, 0.0, 0.5))
    place = np.minimum(((confidence - 0.5) * 2 * _BINS).astype(int), _BINS - 1)
    bins = [place == index for index in range(_BINS)]
    return [
        (float(confidence[inside].mean()), float(right[inside].mean()), int(inside.sum()))
        for inside in bins
        if inside.any()
    ]
