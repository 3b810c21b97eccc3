"""Gold against proxy under best-of-n selection."""

import math

import numpy as np
import pytest

from workers.evaluate.diagnostics import findings
from workers.evaluate.over_optimisation import best_of_n_kl, over_optimisation


def test_the_divergence_is_that_of_the_best_of_n() -> None:
    """Of n draws from 4,000 equally likely values the best has P(i) = ((i + 1)^n - i^n) / N^n."""
    size, n = 4000, 7
    places = np.arange(size)
    best = ((places + 1) / size) ** n - (places / size) ** n
    exact = float((best * np.log(best * size)).sum())
    assert best_of_n_kl(n) == pytest.approx(exact, abs=1e-3)
    assert best_of_n_kl(1) == 0.0


def test_gains_of_independent_normal_rewards() -> None:
    """The best of n normal values is expected sqrt(2) erf^-1 .. above the mean: 0.5642 of 2, 1.0294 of 4."""
    dice = np.random.default_rng(0)
    tasks = [f"task-{number}" for number in range(200) for _ in range(16)]
    reward = dice.normal(size=len(tasks))
    found = over_optimisation(reward, 0.6 * reward + 0.8 * dice.normal(size=len(tasks)), tasks)
    points = {point["n"]: point for point in found["points"]}
    spread = math.sqrt(15 / 16)  # about the mean of 16
    assert points[2]["reward"] == pytest.approx(0.5642 / spread, abs=0.05)
    assert points[4]["reward"] == pytest.approx(1.0294 / spread, abs=0.06)
    assert points[4]["gold"] == pytest.approx(0.6 * 1.0294 / spread, abs=0.06)
    assert (found["n"], found["tasks"]) == (16, 200)
    assert found["peak"] >= 12
    assert found["interval"][1] >= 0


def hacked(tasks: int) -> dict:
    """The outcome rises with the reward up to 1.2 and is lost above."""
    dice = np.random.default_rng(1)
    names = [f"task-{number}" for number in range(tasks) for _ in range(32)]
    reward = dice.normal(size=len(names))
    success = dice.random(len(names)) < np.where(reward > 1.2, 0.0, 1 / (1 + np.exp(-2 * reward)))
    return over_optimisation(reward, success.astype(float), names)


def test_a_reward_that_is_hacked_is_found() -> None:
    found = hacked(tasks=40)
    assert found["peak"] < 8
    assert found["interval"][1] < 0
    assert found["change"] == pytest.approx(
        found["points"][-1]["value"] - found["points"][found["peak"] - 1]["value"], abs=0.1
    )
    named = [finding["name"] for finding in findings({"outcome": {"over_optimisation": found}})]
    assert named == ["over_optimised"]


def test_few_tasks_are_no_finding() -> None:
    found = hacked(tasks=5)
    assert found["interval"] is not None
    assert findings({"outcome": {"over_optimisation": found}}) == []


def test_the_same_tasks_at_every_point() -> None:
    """Ten tasks with three runs, two with many: all twelve are drawn to n = 3."""
    tasks = [f"t{number}" for number in range(10) for _ in range(3)] + ["u"] * 9 + ["v"] * 9
    dice = np.random.default_rng(2)
    found = over_optimisation(dice.normal(size=len(tasks)), dice.normal(size=len(tasks)), tasks)
    assert (found["n"], found["tasks"]) == (3, 12)


@pytest.mark.parametrize(
    ("rewards", "gold", "tasks"),
    [
        ([1.0, 2.0], [0.0, 1.0], ["t", "u"]),  # one run each
        ([1.0, 1.0], [0.0, 1.0], ["t", "t"]),  # equal rewards
        ([1.0, 2.0], [1.0, 1.0], ["t", "t"]),  # equal outcomes
    ],
)
def test_what_says_nothing_gives_none(rewards, gold, tasks) -> None:
    assert over_optimisation(np.array(rewards), np.array(gold), tasks) is None
