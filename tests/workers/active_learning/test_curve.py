import numpy as np
import pytest

from workers.active_learning.curve import _needed, _power_law, learning_curve
from workers.active_learning.posterior import sigmoid


def _answers(count: int, *, sharp: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, list[str]]:
    dice = np.random.default_rng(seed)
    x = dice.normal(size=(count, 12))
    w = np.zeros(12)
    w[:4] = sharp
    y = (dice.random(count) < sigmoid(x @ w)).astype(float)
    return x, y, [f"task {place // 4}" for place in range(count)]


def test_a_curve_rises_and_says_what_it_takes() -> None:
    x, y, tasks = _answers(600, sharp=1.5)
    found = learning_curve(x, y, tasks, wanted=0.8, seed=0)
    assert found is not None and found.needed is not None
    assert found.points[-1].accuracy > found.points[0].accuracy + 0.05
    assert all(low <= point.accuracy <= high for point in found.points for low, high in [point.interval])
    assert found.best - found.drop * found.needed**-found.rate == pytest.approx(0.8, abs=0.01)
    more = learning_curve(x, y, tasks, wanted=0.84, seed=0)
    assert more is not None and (more.needed or 10**9) > found.needed


def test_coins_teach_nothing() -> None:
    x, y, tasks = _answers(400, sharp=0.0)
    found = learning_curve(x, y, tasks, wanted=0.9, seed=0)
    assert found is not None
    assert found.needed is None and abs(found.points[-1].accuracy - 0.5) < 0.08


def test_too_few_are_no_curve() -> None:
    x, y, tasks = _answers(30, sharp=1.0)
    assert learning_curve(x, y, tasks, wanted=None, seed=0) is None
    x, y, _ = _answers(300, sharp=1.0)
    assert learning_curve(x, y, ["one task"] * 300, wanted=None, seed=0) is None
    assert learning_curve(np.zeros((0, 1)), np.zeros(0), [], wanted=0.8, seed=0) is None


def test_ties_alone_are_no_curve() -> None:
    x, _, tasks = _answers(300, sharp=1.0)
    assert learning_curve(x, np.full(300, 0.5), tasks, wanted=None, seed=0) is None


def test_the_power_law_is_found_again() -> None:
    sizes = [25, 50, 100, 200, 400]
    accuracy = np.array([0.85 - 1.2 * n**-0.5 for n in sizes])
    best, drop, rate = _power_law(sizes, accuracy)
    assert (best, drop, rate) == pytest.approx((0.85, 1.2, 0.5), abs=1e-6)
    # 0.85 - 1.2 / sqrt(n) = 0.8 at n = 576.
    assert _needed(best, drop, rate, 0.8, 400) == pytest.approx(576, abs=1)
    assert _needed(best, drop, rate, 0.86, 400) is None


def test_a_curve_never_falls() -> None:
    best, drop, _ = _power_law([25, 50, 100], np.array([0.7, 0.65, 0.6]))
    assert drop == 0 and best == pytest.approx(0.643, abs=0.01)
