import math

import numpy as np
import pytest

from workers.acquire.measures import (
    bald,
    entropy,
    information_gain,
    make_pool,
    novelty,
    representativeness,
    uncertainty,
)
from workers.acquire.posterior import Posterior, sigmoid


def _posterior(width: int = 2) -> Posterior:
    return Posterior(np.zeros(width), np.diag([1.0, 4.0][:width]), 1.0, 0.0)


def test_pairs_groups_and_runs_alone() -> None:
    features = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 3.0]])
    pool = make_pool([(0, 1), (0, 1, 2), (2,)], features)
    assert pool.owner.tolist() == [0, 1, 1, 1, 2]
    np.testing.assert_allclose(pool.differences[0], [-2, 0])
    np.testing.assert_allclose(pool.differences[-1], [0, 2])  # beside the mean run (1, 1)
    np.testing.assert_allclose(pool.looks[0], [1, 0, 1, 0])
    np.testing.assert_allclose(make_pool([(1, 0)], features).looks, make_pool([(0, 1)], features).looks)


def test_an_empty_pool() -> None:
    pool = make_pool([], np.zeros((0, 3)))
    assert uncertainty(pool, Posterior(np.zeros(3), np.eye(3), 1.0, 0.0)).tolist() == []
    assert representativeness(pool, np.zeros((5, 3))).tolist() == []


def test_uncertainty_by_hand() -> None:
    pool = make_pool([(0, 1), (0, 2)], np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]]))
    np.testing.assert_allclose(uncertainty(pool, _posterior()), [3, 6])


def test_bald_is_what_heads_disagree_about() -> None:
    """Against heads that are really drawn."""
    dice = np.random.default_rng(0)
    for margin, spread in ((0.0, 0.5), (0.5, 2.0), (3.0, 1.0), (-3.0, 1.0), (2.0, 4.0)):
        heads = sigmoid(margin + spread * dice.normal(size=200_000))
        drawn = float(entropy(heads.mean(keepdims=True))[0] - entropy(heads).mean())
        assert bald(np.array([margin]), np.array([spread]))[0] == pytest.approx(drawn, abs=0.01)
    assert bald(np.array([1.0]), np.array([0.0]))[0] == pytest.approx(0, abs=1e-12)
    assert bald(np.array([0.0]), np.array([1e6]))[0] == pytest.approx(math.log(2), abs=1e-3)


def test_a_coin_nobody_can_know_teaches_nothing() -> None:
    """A margin of zero is not enough: the heads have to disagree about it."""
    features = np.array([[0.0, 0.0], [1e-3, 0.0], [2.0, 2.0]])
    same, other = information_gain(make_pool([(0, 1), (0, 2)], features), _posterior())
    assert same < 0.01 < other


def test_entropy_of_a_coin() -> None:
    np.testing.assert_allclose(entropy(np.array([0.0, 0.5, 1.0])), [0, math.log(2), 0], atol=1e-12)


def test_novelty_is_the_distance_to_the_nearest() -> None:
    looks = np.array([[0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(novelty(looks, np.array([[0.0, 0.0], [3.0, 0.0]])), [0, 4])
    assert np.isinf(novelty(looks, np.zeros((0, 2)))).all()


def test_what_lies_amid_the_traffic_is_representative() -> None:
    dice = np.random.default_rng(0)
    traffic = dice.normal(size=(200, 3))
    pool = make_pool([(0, 1), (2, 3)], np.array([[0.0] * 3, [0.1] * 3, [5.0] * 3, [6.0] * 3]))
    inside, outside = representativeness(pool, traffic)
    assert inside > 0.1 > 0.001 > outside >= 0
    assert representativeness(pool, np.zeros((0, 3))).tolist() == [1, 1]
