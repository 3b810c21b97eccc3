"""Points that say the same, whatever their words."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from tests.workers.induce.synthetic_evidence import evidence
from workers.induce import clusters
from workers.induce.clusters import build_tree, chance_similarity, typical_texts


def test_steps_tell_apart_what_words_do_not() -> None:
    given, truth = evidence(words=2.0)
    rows = np.arange(len(given.aspects))
    assert adjusted_rand_score(truth, build_tree(given, rows).cut(4)) > 0.9
    bare = np.zeros_like(given.actions)
    blind = type(given)(**{name: getattr(given, name) for name in given.__slots__} | {"actions": bare})
    assert adjusted_rand_score(truth, build_tree(blind, rows).cut(4)) < 0.7


def test_praise_and_blame_of_the_same_words_stay_apart() -> None:
    given, _ = evidence(behaviours=2, signs=(1,))
    aspects = [
        type(aspect)(**{name: getattr(aspect, name) for name in aspect.__slots__}) for aspect in given.aspects
    ]
    blamed = [
        type(one)(**{name: getattr(one, name) for name in one.__slots__} | {"sign": -1 if place % 2 else 1})
        for place, one in enumerate(aspects)
    ]
    mixed = type(given)(**{name: getattr(given, name) for name in given.__slots__} | {"aspects": blamed})
    groups = build_tree(mixed, np.arange(len(blamed))).cut(2)
    for group in (0, 1):
        assert len({blamed[row].sign for row in np.flatnonzero(groups == group)}) == 1


def test_what_is_not_in_the_tree_goes_to_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    given, truth = evidence(phrases=20)
    monkeypatch.setattr(clusters, "MAX_TEXTS", 30)
    tree = build_tree(given, np.arange(len(given.aspects)))
    assert tree.leaves == 30
    assert adjusted_rand_score(truth, tree.cut(4)) > 0.9


def test_one_point_is_a_group() -> None:
    given, _ = evidence(trajectories=1)
    assert build_tree(given, np.array([0])).cut(3).tolist() == [0]
    assert build_tree(given, np.array([0])).principal_plane().shape == (1, 2)


def test_the_most_typical_first_and_each_text_once() -> None:
    angles = np.deg2rad([0, 5, 10, 180, 185])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    assert typical_texts(["a", "b", "c", "d", "e"], vectors, 2) == [1, 3]
    assert typical_texts(["a", "a", "a"], vectors[[0, 0, 0]]) == [0]
    # What is said often weighs more.
    assert typical_texts(["d", "a", "d", "d", "d"], vectors[[3, 0, 3, 3, 3]], 1) == [0]


def test_likeness_by_chance_is_a_quantile_of_pairs_of_one_sign() -> None:
    given, _ = evidence(behaviours=8, trajectories=200)
    rows = np.arange(len(given.aspects))
    level = chance_similarity(given, rows, share=0.1)
    first = {one.feedback: row for row, one in enumerate(given.aspects)}
    kept = list(first.values())
    cosines = given.text[kept] @ given.text[kept].T
    signs = np.array([given.aspects[row].sign for row in kept])
    pairs = cosines[np.triu(signs[:, None] == signs[None], 1)]
    assert (pairs > level).mean() == pytest.approx(0.1, abs=0.02)
