"""Weights of checks and of a model: recovered where the truth is known, never below 0, and what is recommended."""

import numpy as np
import pytest

from workers.errors import InvalidRecord
from workers.evaluate.guard_weights import (
    ActionEvidence,
    compare_with_any_check,
    fit_guard_weights,
    guard_settings,
)
from workers.schema.guards import GuardSettings

CHECKS = ("telling", "noisy", "reversed")


def drawn(count: int, seed: int) -> list[ActionEvidence]:
    """One action each. Log-odds -2 + 4 telling + 0 noisy - 2 reversed + risk."""
    dice, found = np.random.default_rng(seed), []
    for place in range(count):
        broken = frozenset(name for name in CHECKS if dice.random() < 0.4)
        risk = float(dice.normal())
        odds = -2 + 4 * ("telling" in broken) - 2 * ("reversed" in broken) + risk
        violates = dice.random() < 1 / (1 + np.exp(-odds))
        found.append(ActionEvidence(str(place), (broken,), (risk,), 0 if violates else None))
    return found


def test_recovers_weights_and_is_recommended_where_a_check_misleads() -> None:
    known, test = drawn(3000, 0), drawn(600, 1)
    weights = fit_guard_weights(known, CHECKS, has_model=True)
    assert weights.checks["telling"] > 3 and weights.slope > 0.6
    assert weights.checks["noisy"] < 0.4 and weights.checks["reversed"] == 0
    found = compare_with_any_check(weights, known, test)
    assert found["combined"]["f1"] > found["any_check"]["f1"] and found["recommended"] == "combined"
    assert found["log_loss"] < found["base_log_loss"]
    alone = fit_guard_weights(known, CHECKS, has_model=False)
    assert alone.slope == 0


def test_any_check_is_kept_where_nothing_is_gained() -> None:
    """A check that is broken exactly where an action violates leaves nothing to weigh."""
    known = [
        ActionEvidence(
            str(place), (frozenset({"telling"} if place % 2 else ()),), (0.0,), 0 if place % 2 else None
        )
        for place in range(60)
    ]
    found = compare_with_any_check(fit_guard_weights(known, CHECKS, has_model=True), known, known)
    assert found["any_check"]["f1"] == found["combined"]["f1"] == 1 and found["recommended"] == "any_check"


def test_too_few_violations() -> None:
    with pytest.raises(ValueError, match="at least 5"):
        fit_guard_weights(drawn(3, 0), CHECKS, has_model=True)


def test_settings_give_the_same_probability() -> None:
    known = drawn(500, 2)
    weights = fit_guard_weights(known, CHECKS, has_model=True)
    settings = GuardSettings(**guard_settings(weights, 0.5, "violations"))
    for each in known[:20]:
        (odds,) = weights.odds(each)
        found = settings.probability(-each.risks[0], each.broken[0])
        assert found == pytest.approx(1 / (1 + np.exp(-odds)))


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"component": "other", "ask_above": 0.5}, "/component"),
        ({"check_weights": {"other": 1.0}, "ask_above": 0.5}, "/check_weights"),
        ({"ask_above": 0.5}, "/ask_above"),
        ({"component": "model"}, "/component"),
        ({"component": "model", "ask_above": 0.9, "deny_above": 0.5}, "/ask_above"),
    ],
)
def test_settings_without_sense(fields: dict, pointer: str) -> None:
    with pytest.raises(InvalidRecord) as raised:
        GuardSettings(**fields).require_sense(["model"], ["confirm"])
    assert raised.value.pointer == pointer
