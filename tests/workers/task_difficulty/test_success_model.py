import random

import numpy as np
import pytest
from scipy.special import expit

from workers.errors import RewardError
from workers.task_difficulty import (
    ORDERS,
    SuccessEstimate,
    TaskOutcomes,
    draw_tasks,
    fit_success_model,
    ordered_tasks,
)

KINDS = {"refund the broken lamp": 0.9, "translate a legal contract": 0.15, "book a table for two": 0.5}


def world(
    dice: np.random.Generator, *, trials: int, per_kind: int = 12
) -> list[tuple[str, float, TaskOutcomes]]:
    """(kind, true chance, outcomes) of tasks whose texts say their kind."""
    found = []
    for kind, chance in KINDS.items():
        for number in range(per_kind):
            true = float(expit(np.log(chance / (1 - chance)) + dice.normal(0, 0.3)))
            text = f"{kind}, case {number} of {dice.integers(10_000)}"
            found.append((kind, true, TaskOutcomes(text, trials, float(dice.binomial(trials, true)))))
    return found


def test_a_task_without_outcomes_is_predicted_from_its_text() -> None:
    tried = world(np.random.default_rng(0), trials=10)
    unseen = [TaskOutcomes(f"{kind}, case 999") for kind in KINDS]
    _, estimates = fit_success_model([*(task for _, _, task in tried), *unseen])
    for chance, estimate in zip(KINDS.values(), estimates[-3:], strict=True):
        assert estimate.success == pytest.approx(chance, abs=0.12)
        assert estimate.low < chance < estimate.high


def test_nine_of_ten_intervals_cover_the_true_chance() -> None:
    covered = []
    for seed in range(6):
        tried = world(np.random.default_rng(seed), trials=6)
        _, estimates = fit_success_model([task for _, _, task in tried])
        covered += [
            estimate.low <= true <= estimate.high
            for (_, true, _), estimate in zip(tried, estimates, strict=True)
        ]
    assert len(covered) == 216
    assert 0.83 < np.mean(covered) < 0.97


def test_few_outcomes_are_drawn_towards_those_of_similar_tasks() -> None:
    tried = [task for _, _, task in world(np.random.default_rng(1), trials=20)]
    once = TaskOutcomes("refund the broken lamp, case 77", 1, 0)
    _, estimates = fit_success_model([*tried, once])
    assert 0.6 < estimates[-1].success < 0.9  # its one failure alone would be 0
    _, alone = fit_success_model([TaskOutcomes("", 1, 0), TaskOutcomes("", 40, 36)])
    assert alone[0].high - alone[0].low > alone[1].high - alone[1].low


def test_outcomes_of_the_future_move_a_prediction() -> None:
    tried = [task for _, _, task in world(np.random.default_rng(2), trials=10)]
    model, _ = fit_success_model(tried)
    text = "refund the broken lamp, case 5"
    before, after, much_after = model.predict(
        [TaskOutcomes(text), TaskOutcomes(text, 4, 0), TaskOutcomes(text, 400, 0)]
    )
    assert before.success > after.success > much_after.success
    assert much_after.success < 0.02


def test_more_tasks_than_are_fitted_together_all_get_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = [task for _, _, task in world(np.random.default_rng(3), trials=8)]
    _, together = fit_success_model(tried)
    monkeypatch.setattr("workers.task_difficulty.success_model.MOST_FITTED", 24)
    _, apart = fit_success_model(tried)
    assert len(apart) == len(tried)
    differences = [abs(a.success - b.success) for a, b in zip(together, apart, strict=True)]
    assert np.mean(differences) < 0.06


def test_rewards_between_zero_and_one_count_in_part() -> None:
    _, (half, all_of_them) = fit_success_model([TaskOutcomes("", 50, 25.5), TaskOutcomes("", 50, 50)])
    assert half.success == pytest.approx(0.51, abs=0.03)
    assert all_of_them.success > 0.93


def test_what_cannot_be_fitted_is_refused_with_a_reason() -> None:
    with pytest.raises(RewardError, match="no outcome of these tasks is known"):
        fit_success_model([TaskOutcomes("a")])
    with pytest.raises(RewardError, match="3 successes of 2 trials"):
        fit_success_model([TaskOutcomes("a", 2, 3)])


def test_orders_put_the_right_task_first() -> None:
    easy = SuccessEstimate(0.9, 0.85, 0.95, 0.09)
    half = SuccessEstimate(0.5, 0.4, 0.6, 0.24)
    unknown = SuccessEstimate(0.45, 0.05, 0.95, 0.15)
    estimates = [half, unknown, easy]
    assert {order: ordered_tasks(estimates, order)[0] for order in ORDERS} == {
        "difficulty": 2,
        "learnability": 0,
        "uncertainty": 1,
    }


def test_draws_prefer_what_can_be_learnt_and_forget_nothing() -> None:
    solved = SuccessEstimate(1.0, 0.99, 1.0, 0.0)
    half = SuccessEstimate(0.5, 0.4, 0.6, 0.25)
    drawn = draw_tasks([solved, half], 2000, random.Random(0), uniform=0.2)
    assert 140 < drawn.count(0) < 260  # half of 20 %
