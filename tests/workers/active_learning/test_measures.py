import math

import numpy as np
import pytest

from workers.active_learning.measures import (
    bald,
    entropy,
    information_gain,
    make_candidate_pool,
    novelty,
    predictive_gain,
    representativeness,
    uncertainty,
)
from workers.active_learning.posterior import Posterior, sigmoid


def _posterior(width: int = 2) -> Posterior:
    return Posterior(np.zeros(width), np.diag([1.0, 4.0][:width]), 1.0, 0.0)


def test_pairs_groups_and_runs_alone() -> None:
    features = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 3.0]])
    pool = make_candidate_pool([(0, 1), (0, 1, 2), (2,)], features)
    assert pool.owner.tolist() == [0, 1, 1, 1, 2]
    np.testing.assert_allclose(pool.differences[0], [-2, 0])
    np.testing.assert_allclose(pool.differences[-1], [0, 2])  # next to the mean run (1, 1)
    np.testing.assert_allclose(pool.item_features[0], [1, 0, 1, 0])
    np.testing.assert_allclose(
        make_candidate_pool([(1, 0)], features).item_features,
        make_candidate_pool([(0, 1)], features).item_features,
    )


def test_an_empty_pool() -> None:
    pool = make_candidate_pool([], np.zeros((0, 3)))
    assert uncertainty(pool, Posterior(np.zeros(3), np.eye(3), 1.0, 0.0)).tolist() == []
    assert representativeness(pool, np.zeros((5, 3))).tolist() == []


def test_uncertainty_by_hand() -> None:
    pool = make_candidate_pool([(0, 1), (0, 2)], np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]]))
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
    same, other = information_gain(make_candidate_pool([(0, 1), (0, 2)], features), _posterior())
    assert same < 0.01 < other


def test_entropy_of_a_coin() -> None:
    np.testing.assert_allclose(entropy(np.array([0.0, 0.5, 1.0])), [0, math.log(2), 0], atol=1e-12)


def test_novelty_is_the_distance_to_the_nearest() -> None:
    item_features = np.array([[0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(novelty(item_features, np.array([[0.0, 0.0], [3.0, 0.0]])), [0, 4])
    assert np.isinf(novelty(item_features, np.zeros((0, 2)))).all()


def test_what_lies_amid_the_traffic_is_representative() -> None:
    dice = np.random.default_rng(0)
    traffic = dice.normal(size=(200, 3))
    pool = make_candidate_pool([(0, 1), (2, 3)], np.array([[0.0] * 3, [0.1] * 3, [5.0] * 3, [6.0] * 3]))
    inside, outside = representativeness(pool, traffic)
    assert inside > 0.1 > 0.001 > outside >= 0
    assert representativeness(pool, np.zeros((0, 3))).tolist() == [1, 1]


def test_predictive_gain_is_the_information_about_signs() -> None:
    """Against what many heads say; where an answer and a sign hardly hang together, as the second order wants it."""
    dice = np.random.default_rng(0)
    root = 0.25 * dice.normal(size=(3, 3))
    posterior = Posterior(0.2 * dice.normal(size=3), root @ root.T, 1.0, 0.0)
    features = dice.normal(size=(8, 3))
    pool = make_candidate_pool([(2 * place, 2 * place + 1) for place in range(4)], features)
    weights = np.array([1.0, 0.0, 2.0, 1.0])
    margin, variance = posterior.margin(pool.differences), posterior.spread(pool.differences) ** 2
    found = predictive_gain(pool.differences, margin, variance, posterior.covariance, weights)

    heads = dice.multivariate_normal(posterior.mean, posterior.covariance, size=400_000)
    margins = heads @ pool.differences.T
    answers = 1 / (1 + np.exp(-margins))
    expected = np.zeros(4)
    for asked in range(4):
        for target in range(4):
            above = margins[:, target] > 0
            joint = np.array([[(answers[:, asked] * side).mean() for side in (above, ~above)],
                              [((1 - answers[:, asked]) * side).mean() for side in (above, ~above)]])  # fmt: skip
            apart = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
            expected[asked] += weights[target] / weights.sum() * float((joint * np.log(joint / apart)).sum())
    assert found == pytest.approx(expected, rel=0.1)
    assert expected.min() > 1e-3  # more than chance


def test_predictive_gain_of_nothing() -> None:
    nothing = np.zeros(0)
    assert len(predictive_gain(np.zeros((0, 2)), nothing, nothing, np.eye(2), nothing)) == 0
    one = np.ones((1, 2))
    assert predictive_gain(one, np.zeros(1), np.full(1, 2.0), np.eye(2), np.zeros(1)).tolist() == [0.0]
    sure = predictive_gain(one, np.full(1, 500.0), np.zeros(1), np.zeros((2, 2)), np.ones(1))
    assert sure.tolist() == [0.0]
