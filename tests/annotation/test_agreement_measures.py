"""Alphas, intervals and kappas of tables equal those of the libraries that they stand for, table by table."""

import warnings
from typing import Literal

import krippendorff
import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import cohen_kappa_score

from apps.annotation import agreement_measures
from apps.annotation.agreement_measures import RESAMPLES, ValueTable

Table = NDArray[np.float64]
Level = Literal["nominal", "ordinal", "interval"]


def random_table(seed: int, level: Level) -> Table:
    """2 to 6 annotators, 10 to 40 units, some not judged; each unit has two values at least."""
    draw = np.random.default_rng(seed)
    people, units = draw.integers(2, 7), draw.integers(10, 41)
    values = draw.integers(0, draw.integers(2, 6), (people, units)).astype(float)
    if level == "interval":
        values = values / 7
    values[draw.random(values.shape) < 0.3] = np.nan
    return values[:, (~np.isnan(values)).sum(axis=0) >= 2]


def resampled_interval(table: Table, level: Level) -> list[float]:
    """The library's alpha of each resample, one after the other."""
    domain = np.unique(table[~np.isnan(table)])
    counts = np.stack([(table == value).sum(axis=0) for value in domain], axis=1)
    draw = np.random.default_rng(0)
    found = []
    for _ in range(RESAMPLES):
        chosen = counts[draw.integers(0, len(counts), len(counts))]
        if (chosen.sum(axis=0) > 0).sum() > 1:
            found.append(
                krippendorff.alpha(value_counts=chosen, value_domain=domain, level_of_measurement=level)
            )
    low, high = np.percentile(found, [2.5, 97.5])
    return [float(low), float(high)]


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("seed", range(6))
def test_a_table_has_the_figures_of_the_libraries(seed: int, level: Level) -> None:
    values = random_table(seed, level)
    table = ValueTable(values, level)
    expected = krippendorff.alpha(reliability_data=values, level_of_measurement=level)
    assert table.alpha == pytest.approx(expected, abs=1e-12)
    if values.shape[1] >= 10:
        assert table.interval == pytest.approx(resampled_interval(values, level), abs=1e-12)
    for pair in table.pairs():
        both = ~np.isnan(values[pair.first]) & ~np.isnan(values[pair.second])
        a, b = values[pair.first, both], values[pair.second, both]
        assert pair.n == both.sum()
        assert pair.kappa == (
            None if len({*a, *b}) == 1 else pytest.approx(weighted_kappa(a, b, level), abs=1e-12)
        )


def weighted_kappa(a: Table, b: Table, level: Level) -> float:
    if level == "interval":  # Cohen (1968), with the squared distance
        return float(1 - ((a - b) ** 2).mean() / np.subtract.outer(a, b).__pow__(2).mean())
    known = sorted({*a, *b})
    codes = [[known.index(value) for value in row] for row in (a, b)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(cohen_kappa_score(*codes, weights="quadratic" if level == "ordinal" else None))


def test_a_scale_of_any_length_fits_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the library's arrays would be too large: by sums of squares, with the same result."""
    values = np.random.default_rng(3).random((4, 50))
    values[0, ::3] = np.nan
    expected = ValueTable(values, "interval").alpha
    monkeypatch.setattr(agreement_measures, "_LIBRARY_CELLS", 0)
    monkeypatch.setattr("krippendorff.alpha", None)
    assert ValueTable(values, "interval").alpha == pytest.approx(expected, abs=1e-12)


def test_an_empty_table_and_one_of_equal_values() -> None:
    empty = ValueTable(np.empty((2, 0)), "nominal")
    assert (empty.alpha, empty.interval, list(empty.pairs())) == (None, None, [])
    equal = ValueTable(np.ones((2, 12)), "nominal")
    assert (equal.alpha, equal.interval) == (1.0, None)
    (pair,) = equal.pairs()
    assert (pair.kappa, pair.n) == (None, 12)
