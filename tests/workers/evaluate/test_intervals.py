"""Intervals by task: exact numbers, and how often they contain the truth."""

import math
from functools import partial

import numpy as np
import pytest
from scipy.stats import t as student

from benchmarks.interval_coverage import accuracy_coverage, difference_coverage
from workers.evaluate.bootstrap import (
    difference_interval,
    interval,
    mean_interval,
    statistic_interval,
    t_quantile,
    weighted_interval,
)
from workers.evaluate.diagnostics import findings
from workers.evaluate.ranks import spearman, spearman_draws


def test_quantiles_of_student() -> None:
    for freedom in (1, 2, 3, 8, 9, 50, 999):
        assert t_quantile(freedom) == pytest.approx(student.ppf(0.975, freedom), rel=1e-9)


def test_an_accuracy_by_hand() -> None:
    """Ten tasks of one comparison, 7 right: CR2 is the usual p (1 - p) / (n - 1), so that n is 9 for Wilson, with the t
    of 9 degrees of freedom."""
    mean, (low, high) = mean_interval([1.0] * 7 + [0.0] * 3, [str(task) for task in range(10)])
    factor = student.ppf(0.975, 9) ** 2 / 9
    centre = (0.7 + factor / 2) / (1 + factor)
    half = math.sqrt(factor) / (1 + factor) * math.sqrt(0.21 + factor / 4)
    assert (mean, low, high) == (0.7, pytest.approx(centre - half), pytest.approx(centre + half))


def test_all_right_is_not_certainty() -> None:
    """Ten tasks of five comparisons: n is 10 for Wilson, 10 / (10 + t^2)."""
    values, tasks = [1.0] * 50, [str(task) for task in range(10) for _ in range(5)]
    low = 10 / (10 + student.ppf(0.975, 9) ** 2)
    assert mean_interval(values, tasks) == (1.0, [pytest.approx(low), pytest.approx(1.0)])
    assert mean_interval([0.0] * 50, tasks)[1] == [pytest.approx(0.0), pytest.approx(1 - low)]


def test_a_difference_by_hand() -> None:
    """Four tasks of two: residual sums 3/2, -1/2, -1/2, -1/2 around a mean of 1/4; se^2 = 3 / (1 - 1/4) / 8^2."""
    first, second = [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    mean, (low, high) = difference_interval(first, second, ["a", "a", "b", "b", "c", "c", "d", "d"])
    half = student.ppf(0.975, 3) * math.sqrt(3 / (1 - 1 / 4)) / 8
    assert (mean, low, high) == (0.25, pytest.approx(0.25 - half), 1.0)  # not 1.05


def _tasks(count: int, each: int) -> list[str]:
    return [str(task) for task in range(count) for _ in range(each)]


@pytest.mark.parametrize(("tasks", "each", "right"), [(2, 3, 2), (12, 5, 4), (3, 7, 2), (10, 2, 1)])
def test_residuals_that_cancel_inside_tasks_are_not_certainty(tasks: int, each: int, right: int) -> None:
    """Every task has the same share: the error is that of independent values, whatever rounding leaves of the sums."""
    values, names = ([1.0] * right + [0.0] * (each - right)) * tasks, _tasks(tasks, each)
    n, share = tasks * each, right / each
    quantile, error = student.ppf(0.975, tasks - 1), math.sqrt(share * (1 - share) / (n - 1))
    _, (low, high) = difference_interval(values, [0.0] * n, names)
    assert low == pytest.approx(max(-1, share - quantile * error))
    assert high == pytest.approx(min(1, share + quantile * error))
    low, high = mean_interval(values, names)[1]
    factor = quantile**2 / (n - 1)
    half = math.sqrt(factor) / (1 + factor) * math.sqrt(share * (1 - share) + factor / 4)
    assert (low, high) == (
        pytest.approx((share + factor / 2) / (1 + factor) - half),
        pytest.approx((share + factor / 2) / (1 + factor) + half),
    )


def test_wins_and_losses_that_balance_are_not_equality() -> None:
    """A win and a loss in each of twelve tasks of ten, and nearly so: 24 of 120 are decided differently."""
    first, second = ([1.0] + [0.0] * 9) * 12, ([0.0, 1.0] + [0.0] * 8) * 12
    mean, (low, high) = difference_interval(first, second, _tasks(12, 10))
    half = student.ppf(0.975, 11) * math.sqrt(0.2 / 119)
    assert (mean, low, high) == (0.0, pytest.approx(-half), pytest.approx(half))
    _, (low, high) = difference_interval([*first[:-1], 1.0], second, _tasks(12, 10))
    assert high - low > 2 * half


def test_values_between_0_and_1_are_at_most_their_number() -> None:
    """Ten values around 1/2 vary less than ten that are right or wrong."""
    _, (low, high) = mean_interval([0.45, 0.55] * 5, _tasks(10, 1))
    assert high - low > 0.5


def test_a_hundred_judgements_of_two_tasks_are_two() -> None:
    values = [1.0] * 50 + [0.0] * 50
    assert mean_interval(values, ["x"] * 50 + ["y"] * 50)[1] == [
        pytest.approx(0, abs=0.01),
        pytest.approx(1, abs=0.01),
    ]
    low, high = mean_interval(values, [str(number) for number in range(100)])[1]
    assert (low, high) == (pytest.approx(0.4, abs=0.01), pytest.approx(0.6, abs=0.01))


def test_one_large_task_counts_as_little_more_than_one() -> None:
    low, high = mean_interval([1.0] * 99 + [0.0], ["x"] * 98 + ["y", "z"])[1]
    assert (low, high) == (0.0, 1.0)


def test_few_tasks_widen_percentiles() -> None:
    drawn = np.random.default_rng(0).normal(size=4000)
    narrow, wide = interval(drawn), interval(drawn, 5)
    assert narrow is not None
    assert wide is not None
    factor = math.sqrt(5 / 4) * student.ppf(0.975, 4) / 1.96
    assert (wide[1] - wide[0]) / (narrow[1] - narrow[0]) == pytest.approx(factor, rel=0.12)
    assert interval(drawn, 1) is None
    assert interval(np.ones(100), 20) is None, "nothing varies"
    assert statistic_interval(lambda places: float(places.mean()), ["one"] * 5, draws=10) is None


@pytest.mark.parametrize("tasks", [10, 20])
def test_coverage(tasks: int) -> None:
    """A small part of `benchmarks.interval_coverage`; 200 repeats have a standard error of 1.5 points."""
    for accuracy in (0.7, 0.9):
        assert accuracy_coverage(accuracy, tasks, 200)[0] >= 0.91
    assert difference_coverage(0.1, tasks, 200)[0] >= 0.91


def test_no_finding_of_few_tasks() -> None:
    """An interval beyond chance of 4 tasks states no cause; of 10 it does. A correlation with length likewise."""
    part = {"interval": [-0.9, -0.2], "tasks": 4}
    assert findings({"scores": part}) == []
    assert [found["name"] for found in findings({"scores": part | {"tasks": 10}})] == ["worse_than_chance"]
    length = {"length_correlation": 0.95, "truncated": {"n": 0, "of": 4}}
    assert findings(length) == []
    assert [found["name"] for found in findings(length | {"truncated": {"n": 0, "of": 20}})] == ["length"]


@pytest.mark.parametrize("levels", [2, 4, 1000])
def test_weighted_draws_give_what_each_draw_gives_alone(levels: int) -> None:
    generator = np.random.default_rng(levels)
    first, second = (generator.integers(levels, size=60).astype(float) for _ in range(2))
    tasks = [str(task) for task in generator.integers(9, size=60)]
    one_by_one = statistic_interval(
        lambda places: spearman(first[places], second[places]), tasks, draws=400, seed=3
    )
    at_once = weighted_interval(partial(spearman_draws, first, second), tasks, draws=400, seed=3)
    assert at_once == pytest.approx(one_by_one, abs=1e-12)
    assert at_once[0] < spearman(first, second) < at_once[1]


def test_a_draw_in_which_nothing_varies_has_no_rank_correlation() -> None:
    first, second = np.array([1.0, 1.0, 3.0, 7.0]), np.array([0.1, 0.2, 0.3, 0.4])
    weights = np.array([[2.0, 3.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 2.0]])
    found = spearman_draws(first, second, weights)
    assert np.isnan(found[:2]).all()
    assert found[2] == pytest.approx(1)
