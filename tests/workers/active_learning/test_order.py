import numpy as np
import pytest

from workers.active_learning.measures import CandidatePool, make_candidate_pool
from workers.active_learning.order import (
    STRATEGIES,
    AnnotatedData,
    Strategy,
    measure_shares,
    rank_items,
    rank_scores,
)
from workers.active_learning.posterior import Numbers, Posterior, fit, sigmoid

NOTHING = np.zeros((0, 2))


def _known(
    pool: CandidatePool, posterior: Posterior | None, item_features: Numbers | None = None
) -> AnnotatedData:
    width = pool.features.shape[1]
    return AnnotatedData(
        posterior, np.zeros((0, 2 * width)) if item_features is None else item_features, np.zeros((0, width))
    )


def _some(items: int, seed: int = 0) -> tuple[CandidatePool, Posterior]:
    dice = np.random.default_rng(seed)
    features = dice.normal(size=(2 * items, 3))
    pool = make_candidate_pool([(2 * place, 2 * place + 1) for place in range(items)], features)
    said = fit(pool.differences[:10], (pool.differences[:10, 0] > 0).astype(float))
    return pool, said


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_item_has_its_place_once(strategy: Strategy) -> None:
    pool, posterior = _some(40)
    for known in (_known(pool, posterior, pool.item_features[:5]), _known(pool, None)):
        found = rank_items(pool, known, strategy, count=7, seed=1).order
        assert sorted(found) == list(range(40))
        assert found == rank_items(pool, known, strategy, count=7, seed=1).order


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nothing_to_choose_from(strategy: Strategy) -> None:
    pool = make_candidate_pool([], np.zeros((3, 2)))
    assert rank_items(pool, _known(pool, None), strategy, count=5, seed=0).order == []


def test_at_random_is_by_the_seed() -> None:
    pool, posterior = _some(40)
    known = _known(pool, posterior)
    first, second = (rank_items(pool, known, "random", count=9, seed=seed).order for seed in (0, 1))
    assert first != second


def test_the_same_is_not_asked_twice() -> None:
    """Two items ask the same of the head; the second choice is what is not known after the first."""
    features = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.9]])
    pool = make_candidate_pool([(0, 1), (0, 1), (0, 2)], features)
    wide = Posterior(np.zeros(2), np.eye(2) * 5, 5.0, 0.0)
    for strategy in ("information_gain", "uncertainty"):
        first, second, _ = rank_items(pool, _known(pool, wide), strategy, count=3, seed=0).order
        assert (first in (0, 1), second) == (True, 2), strategy
    alone = rank_items(pool, _known(pool, wide), "information_gain", count=0, seed=0).order
    assert set(alone[:2]) == {0, 1}  # one by one is what makes the difference


def test_a_choice_makes_heads_as_sure_as_its_answer_would() -> None:
    """The rank-one update is the inverse of the precision with the answer's own in it."""
    pool, posterior = _some(12)
    first = rank_items(pool, _known(pool, posterior), "uncertainty", count=1, seed=0).order[0]
    x = pool.differences[first]
    spread = posterior.spread(x[None])[0]
    chance = sigmoid(np.array([x @ posterior.mean / np.sqrt(1 + np.pi / 8 * spread**2)]))[0]
    precision = np.linalg.inv(posterior.covariance) + chance * (1 - chance) * np.outer(x, x)
    surer = Posterior(posterior.mean, np.linalg.inv(precision), 1.0, 0.0).spread(pool.differences)
    surer[first] = -1
    assert (
        rank_items(pool, _known(pool, posterior), "uncertainty", count=2, seed=0).order[1] == surer.argmax()
    )


def test_k_center_by_hand() -> None:
    features = np.array([[0.0], [1.0], [5.0], [9.0], [10.0]])
    pool = make_candidate_pool([(place,) for place in range(5)], features)
    known = _known(pool, None, pool.item_features[:1])  # 0 was asked about
    assert rank_items(pool, known, "diversity", count=3, seed=0).order[:2] == [4, 2]  # at 10, then at 5


def test_a_mix_asks_about_what_is_scored() -> None:
    """Both pairs teach as much of the head; one of them where the traffic is."""
    features = np.array([[0.0, 0.0], [2.0, 0.0], [10.0, 10.0], [10.0, 12.0]])
    pool = make_candidate_pool([(0, 1), (2, 3)], features)
    wide = Posterior(np.zeros(2), np.eye(2) * 5, 5.0, 0.0)
    for near, wanted in ((0, 0), (2, 1)):
        dice = np.random.default_rng(0)
        known = AnnotatedData(wide, np.zeros((0, 4)), features[near] + dice.normal(size=(50, 2)))
        assert rank_items(pool, known, "mix", count=1, seed=0).order[0] == wanted


def test_without_heads_a_mix_is_at_random() -> None:
    pool, _ = _some(40)
    mixed, drawn = (
        rank_items(pool, _known(pool, None), name, count=9, seed=3).order for name in ("mix", "random")
    )
    assert mixed == drawn


def test_scores_fall_with_the_order() -> None:
    assert rank_scores([2, 0, 1]).tolist() == pytest.approx([2 / 3, 1 / 3, 1])


def test_shares_of_the_pool() -> None:
    found = measure_shares({"diversity": np.array([3.0, 1.0, 3.0, 2.0]), "uncertainty": np.full(4, np.inf)})
    assert found.keys() == {"diversity"}
    assert found["diversity"].tolist() == [1, 0.25, 1, 0.5]
