import math

import numpy as np
import pytest

from apps.agent_drift.sequential_tests import ShareCount, is_worse, log_e_value, share_interval, upper_bound


def test_an_e_value_by_hand() -> None:
    """One bad trajectory, bound 1/2: the mean of p / (1/2) over Jeffreys' prior above 1/2, which is 1 + 2 / pi."""
    assert log_e_value(ShareCount(1, 1), 0.5) == pytest.approx(math.log(1 + 2 / math.pi))
    assert log_e_value(ShareCount(), 0.5) == pytest.approx(0.0)


@pytest.mark.parametrize("chance", [0.02, 0.1, 0.5])
def test_its_expectation_is_at_most_one_under_the_bound(chance: float) -> None:
    for true in (chance, chance / 2):
        total = sum(
            math.comb(12, bad) * true**bad * (1 - true) ** (12 - bad)
            * math.exp(log_e_value(ShareCount(bad, 12), chance))
            for bad in range(13)
        )  # fmt: skip
        assert total == pytest.approx(1.0) if true == chance else total < 1.0


def test_looking_after_every_trajectory_raises_few_false_alarms() -> None:
    dice = np.random.default_rng(0)
    alarms = 0
    for _ in range(200):
        first, later = dice.random(100) < 0.1, dice.random(200) < 0.1
        reference = ShareCount(int(first.sum()), 100)
        bad = later.cumsum()
        alarms += any(
            is_worse(ShareCount(int(bad[end - 1]), end), reference, alpha=0.1) for end in range(5, 201, 5)
        )
    assert alarms <= 0.1 * 200


def test_a_version_that_is_worse_is_found() -> None:
    assert is_worse(ShareCount(40, 200), ShareCount(4, 200))
    assert not is_worse(ShareCount(6, 200), ShareCount(4, 200))
    assert not is_worse(ShareCount(1, 1), ShareCount(4, 200))  # too few to be sure
    assert not is_worse(ShareCount(0, 500), ShareCount(50, 200))  # better is no drift


def test_an_interval_holds_the_share_and_narrows() -> None:
    low, high = share_interval(ShareCount(10, 100))
    assert low < 0.1 < high
    closer = share_interval(ShareCount(100, 1000))
    assert low < closer[0] < 0.1 < closer[1] < high
    assert share_interval(ShareCount()) == (0.0, 1.0)
    assert share_interval(ShareCount(0, 50))[0] == 0.0
    assert upper_bound(ShareCount(50, 50), 0.01) == 1.0


def test_intervals_cover_at_all_times_together() -> None:
    dice = np.random.default_rng(1)
    missed = 0
    for _ in range(100):
        bad = (dice.random(300) < 0.2).cumsum()
        for end in range(10, 301, 10):
            low, high = share_interval(ShareCount(int(bad[end - 1]), end))
            if not low <= 0.2 <= high:
                missed += 1
                break
    assert missed <= 5
