"""Estimators, near-miss credit and fitted weights at the sample desk, with fewer requests and updates than the
benchmarks have."""

import pytest
from touchstone_client.advantages import ESTIMATORS, WARNINGS

from benchmarks import estimators, fitted_weights, near_miss

pytestmark = pytest.mark.slow
MIX = "noisy step credit"


def test_estimators_without_a_warning_raise_the_true_reward() -> None:
    """The 95 % interval of the rise over five seeds is above 0. Those with a warning still run."""
    found = {
        name: (round(one["rise"], 3), round(one["low"], 3), round(one["paid after"] - one["paid before"], 3))
        for name, _, one in estimators.results(list(ESTIMATORS), [MIX], 5, updates=50, kinds=3)
    }
    assert set(found) == set(ESTIMATORS)
    assert not {name: one for name, one in found.items() if one[1] <= 0 and name not in WARNINGS}, found


def test_the_mixes_pay_what_they_say() -> None:
    """A request answered at once, and one looked up, looked up again and answered."""
    task = next(iter(estimators.TASKS))
    for moves in (("reply",), ("look", "look", "reply")):
        done = estimators.played(task, moves).reward >= estimators.DONE
        paid = estimators.outcome(task, moves)
        assert (paid.reward, sum(paid.steps), len(paid.steps)) == (float(done), float(done), len(moves))
        ruled = estimators.outcome_and_rules(task, moves)
        assert ruled.reward == pytest.approx(sum(ruled.steps))
        assert ruled.reward <= paid.reward - 0.1 * len(moves)  # a step costs 0.1; repeated words more


def test_near_miss_credit_needs_fewer_roll_outs_than_the_outcome_alone() -> None:
    """Three kinds of requests and eight seeds: the 95 % interval of the ratio is below 1."""
    found = near_miss.run(8, most=80, kinds=3)
    assert found["reached"] == {"outcome": 8, "near misses": 8}
    assert found["ratio"]["high"] < 1, found


def test_fitted_weights_leave_out_the_harmful_component() -> None:
    """One seed, fewer updates: a policy trained on equal weights hands out coupons and refunds; on fitted, hardly."""
    found = fitted_weights.run(0, updates=40)
    for fit in ("comparisons", "bi-level"):
        assert found["weights"][fit]["generous"] == 0
        assert found[fit]["true"] > found["equal"]["true"] + 0.1
        assert found[fit]["generous"] < found["equal"]["generous"] / 3
