import math

import numpy as np
import pytest

from workers.active_learning.posterior import fit, sigmoid


def test_one_comparison_by_hand() -> None:
    found = fit(np.array([[1.0]]), np.array([1.0]), variances=(1.0,))
    # w = 1 - sigmoid(w), and the second derivative of the loss is sigmoid (1 - sigmoid) + 1 there.
    assert found.mean[0] == pytest.approx(0.401058, abs=1e-5)
    chance = 1 / (1 + math.exp(-0.401058))
    assert found.covariance[0, 0] == pytest.approx(1 / (1 + chance * (1 - chance)), abs=1e-5)
    assert found.spread(np.array([[2.0]]))[0] == pytest.approx(2 * math.sqrt(found.covariance[0, 0]))


def test_a_tie_says_that_neither_is_better() -> None:
    assert fit(np.array([[1.0]]), np.array([0.5]), variances=(1.0,)).mean[0] == pytest.approx(0, abs=1e-6)


def test_a_weight_of_two_is_two_comparisons() -> None:
    x, y = np.array([[1.0, 0.5], [0.2, -1.0]]), np.array([1.0, 0.0])
    twice = fit(x[[0, 0, 1]], y[[0, 0, 1]], variances=(3.0,))
    weighted = fit(x, y, weights=np.array([2.0, 1.0]), variances=(3.0,))
    np.testing.assert_allclose(weighted.mean, twice.mean, atol=1e-6)
    np.testing.assert_allclose(weighted.covariance, twice.covariance, atol=1e-6)


def test_the_mean_is_where_the_posterior_is_highest() -> None:
    dice = np.random.default_rng(0)
    x = dice.normal(size=(80, 4))
    y = (dice.random(80) < sigmoid(x @ np.array([2.0, -1.0, 0.5, 0.0]))).astype(float)
    found = fit(x, y, variances=(2.0,))

    def loss(w: np.ndarray) -> float:
        margin = x @ w
        return float((np.logaddexp(0, -margin) * y + np.logaddexp(0, margin) * (1 - y)).sum() + w @ w / 4)

    for direction in np.eye(4):
        assert loss(found.mean) < min(
            loss(found.mean + 0.01 * direction), loss(found.mean - 0.01 * direction)
        )
    assert np.sign(found.mean[:2]).tolist() == [1, -1]


def test_separable_answers_do_not_run_away() -> None:
    x = np.linspace(0.5, 1, 200)[:, None]
    found = fit(x, np.ones(200))
    # The evidence wants the widest prior there is.
    assert np.isfinite(found.mean).all() and found.variance == 30.0


def test_answers_by_chance_want_a_narrow_prior() -> None:
    dice = np.random.default_rng(1)
    found = fit(dice.normal(size=(300, 20)), dice.integers(2, size=300).astype(float))
    assert found.variance == 0.3


def test_more_answers_make_heads_surer() -> None:
    dice = np.random.default_rng(2)
    x = dice.normal(size=(400, 6))
    y = (x[:, 0] > 0).astype(float)
    few, many = fit(x[:20], y[:20], variances=(1.0,)), fit(x, y, variances=(1.0,))
    assert (many.spread(x) < few.spread(x)).all()
    assert fit(x, y, start=many.mean, variances=(1.0,)).mean == pytest.approx(many.mean, abs=1e-4)
