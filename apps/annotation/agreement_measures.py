"""Krippendorff's alpha with its interval, and Cohen's kappa, of tables of values."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import krippendorff
import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]
Codes = NDArray[np.intp]
Distances = Callable[[Table], Table]  # of values to one another: [values] to [values, values], in [0, 1]

RESAMPLES = 300
# Of an interval scale: beyond it the bootstrap takes too much memory, and there is no interval.
MAX_VALUES = 200
_LIBRARY_CELLS = 20_000_000  # of the arrays [units, values, values] that `krippendorff.alpha` makes


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Of two rows of a table. n: units that both judged. kappa: None where both always gave one and the same value."""

    first: int
    second: int
    kappa: float | None
    n: int


class ValueTable:
    """Values of annotators, [annotators, units], NaN where one did not judge the other; each unit was judged twice.

    level: "nominal", "ordinal", "interval", or "set" with the distances of values that stand for sets.
    """

    def __init__(self, values: Table, level: str, distances: Distances | None = None) -> None:
        self.values, self.level, self._distances = values, level, distances
        self.judged = ~np.isnan(values)
        self.domain: Table = np.unique(values[self.judged])

    @cached_property
    def codes(self) -> Codes:
        """[annotators, units], places in the domain; those not judged have any."""
        return np.searchsorted(self.domain, np.where(self.judged, self.values, self.domain[0]))

    @property
    def alpha(self) -> float | None:
        """Krippendorff (2011), "Computing Krippendorff's alpha-reliability"; None without units."""
        if self.values.size == 0:
            return None
        if len(self.domain) == 1:
            return 1.0  # all values are equal: no disagreement, and none expected by chance
        cells = self.values.shape[1] * len(self.domain) * max(len(self.domain), len(self.values))
        if self.level == "interval" and cells > _LIBRARY_CELLS:
            return self._alpha_by_moments()
        return float(
            krippendorff.alpha(reliability_data=self.values, level_of_measurement=self._library_metric)
        )

    @property
    def _library_metric(self) -> Any:
        if self._distances is None:
            return self.level
        distances = self._distances(self.domain)

        def distance(v1: NDArray[Any], v2: NDArray[Any], **_: Any) -> NDArray[Any]:
            return distances[np.searchsorted(self.domain, v1), np.searchsorted(self.domain, v2)]

        return distance

    def _alpha_by_moments(self) -> float:
        """By sums of squares: of n values, the squared differences of all pairs sum to n times theirs from the mean."""
        counts = self.judged.sum(axis=0)
        centred = np.where(self.judged, self.values - self.values[self.judged].mean(), 0.0)
        squares, sums = (centred**2).sum(axis=0), centred.sum(axis=0)
        total = counts.sum()
        observed = (2 * (counts * squares - sums**2) / (counts - 1)).sum()
        expected = 2 * (total * squares.sum() - sums.sum() ** 2) / (total - 1)
        return float(1 - observed / expected)

    @property
    def interval(self) -> list[float] | None:
        """95 %, by resampling units; None where there are too few of them, or values, to say."""
        units = self.values.shape[1]
        if units < 10 or not 2 <= len(self.domain) <= MAX_VALUES:
            return None
        cells = np.arange(units) * len(self.domain) + self.codes
        counts = np.bincount(cells[self.judged], minlength=units * len(self.domain)).reshape(units, -1)
        # Units with the same values count the same, so that a resample is how often each of them was drawn.
        patterns, pattern = np.unique(counts, axis=0, return_inverse=True)
        draw = np.random.default_rng(0)
        drawn = np.stack(
            [
                np.bincount(pattern[draw.integers(0, units, units)], minlength=len(patterns))
                for _ in range(RESAMPLES)
            ]
        )
        found = self._resampled_alphas(patterns.astype(np.float64), drawn.astype(np.float64))
        low, high = np.percentile(found, [2.5, 97.5])
        return [float(low), float(high)]

    def _resampled_alphas(self, patterns: Table, drawn: Table) -> list[float]:
        """Alphas of the resamples with more than one value.

        patterns: [patterns, values], how often a unit has each value. drawn: [resamples, patterns].
        """
        totals = drawn @ patterns  # [resamples, values]
        several = (totals > 0).sum(axis=1) > 1
        drawn, totals = drawn[several], totals[several]
        if self.level == "ordinal":
            return [
                self._ordinal_alpha(patterns, weights, of) for weights, of in zip(drawn, totals, strict=True)
            ]
        distances = self._fixed_distances()
        disagreements = ((patterns @ distances) * patterns).sum(axis=1) / (patterns.sum(axis=1) - 1)
        expected = ((totals @ distances) * totals).sum(axis=1) / (totals.sum(axis=1) - 1)
        found: list[float] = (1 - drawn @ disagreements / expected).tolist()
        return found

    def _fixed_distances(self) -> Table:
        """Of the values to one another, where it does not depend on how frequent they are. [values, values]"""
        if self._distances is not None:
            return self._distances(self.domain)
        apart = np.subtract.outer(self.domain, self.domain)
        return apart**2 if self.level == "interval" else (apart != 0).astype(np.float64)

    def _ordinal_alpha(self, patterns: Table, weights: Table, totals: Table) -> float:
        """The distance of two values is how many values lie between them, with half of either."""
        below = np.cumsum(totals)
        distances = np.subtract.outer(below - totals / 2, below - totals / 2) ** 2
        each = weights / (patterns.sum(axis=1) - 1)
        coincidences = (patterns * each[:, np.newaxis]).T @ patterns
        observed = (coincidences * distances).sum()
        return float(1 - observed / ((totals @ distances) @ totals / (totals.sum() - 1)))

    def pairs(self) -> Iterator[PairAgreement]:
        """Of annotators who judged units in common."""
        present = self.judged.astype(np.float32)
        in_common = present @ present.T
        for first, second in combinations(range(len(self.values)), 2):
            if in_common[first, second]:
                both = self.judged[first] & self.judged[second]
                kappa = self._kappa(self.values[first, both], self.values[second, both])
                yield PairAgreement(first, second, kappa, int(both.sum()))

    def _kappa(self, a: Table, b: Table) -> float | None:
        """Cohen (1960); with the squared distance as weight (Cohen 1968) where the values have one, or that of sets."""
        if self.level == "interval":
            return _interval_kappa(a, b)
        known, codes = np.unique(np.concatenate([a, b]), return_inverse=True)
        if len(known) == 1:
            return None
        joint = np.bincount(codes[: len(a)] * len(known) + codes[len(a) :], minlength=len(known) ** 2)
        joint = joint.reshape(len(known), len(known))
        places = np.arange(len(known))
        if self._distances is not None:
            weights = self._distances(known)
        elif self.level == "ordinal":
            weights = np.subtract.outer(places, places).astype(np.float64) ** 2
        else:
            weights = 1.0 - np.eye(len(known))
        chance = (weights * (np.outer(joint.sum(axis=1), joint.sum(axis=0)) / len(a))).sum()
        return None if chance == 0 else float(1 - (weights * joint).sum() / chance)


def _interval_kappa(a: Table, b: Table) -> float | None:
    """The mean squared difference within pairs of values, over that of any value of one to any of the other."""
    if len(np.unique(np.concatenate([a, b]))) == 1:
        return None
    middle = (a.mean() + b.mean()) / 2
    a, b = a - middle, b - middle
    chance = float((a**2).mean() + (b**2).mean() - 2 * a.mean() * b.mean())
    return None if chance == 0 else float(1 - ((a - b) ** 2).mean() / chance)
