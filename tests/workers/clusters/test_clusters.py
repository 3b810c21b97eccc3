"""Clusters against sklearn's own measures, on points whose groups are known."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from workers.clusters.pipeline import cluster_folder, cluster_rows, cluster_terms
from workers.errors import RewardError

pytestmark = pytest.mark.ml


def blobs(sizes: list[int], *, hidden: int = 16, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    centres = draw.normal(size=(len(sizes), hidden))
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return centres[labels] + 0.1 * draw.normal(size=(len(labels), hidden)), labels


@pytest.mark.parametrize("count", [None, 4])
def test_known_groups_are_found_and_the_largest_is_the_first(count: int | None) -> None:
    vectors, labels = blobs([40, 80, 20, 60])
    found = cluster_rows(vectors, count)
    assert adjusted_rand_score(labels, found.cluster) == 1.0
    assert np.bincount(found.cluster).tolist() == [80, 60, 40, 20]
    assert found.silhouette is not None and found.silhouette > 0.8
    assert found.places.shape == (200, 2) and (found.distance >= 0).all() and found.distance.max() < 0.2


def test_what_cannot_be_clustered_is_refused() -> None:
    with pytest.raises(RewardError, match="need at least 3"):
        cluster_rows(np.ones((2, 4)))
    with pytest.raises(RewardError, match="9 clusters of 3 different"):
        cluster_rows(np.eye(3), 9)


def test_equal_trajectories_are_one_cluster() -> None:
    found = cluster_rows(np.ones((5, 4)))
    assert found.cluster.tolist() == [0] * 5 and found.silhouette is None


def test_terms_tell_clusters_apart() -> None:
    texts = {
        0: "the refund of a flight",
        1: "a refund for the flight",
        2: "the pizza order",
        3: "order one pizza",
    }
    terms = cluster_terms([0, 0, 1, 1], texts)
    assert {"refund", "flight"} <= set(" ".join(terms[0]).split())
    assert "pizza" in " ".join(terms[1]) and "refund" not in " ".join(terms[1])
    assert cluster_terms([0], {0: "the of and"}) == {}


def test_a_folder_is_clustered(tmp_path: Path) -> None:
    vectors, _ = blobs([6, 4])
    np.save(tmp_path / "vectors.npy", vectors.astype(np.float32))
    (tmp_path / "config.json").write_text('{"cluster_count": 2}')
    (tmp_path / "texts.json").write_text(json.dumps({0: "flights", 9: "pizza"}))
    result = cluster_folder(tmp_path)
    assert [found["count"] for found in result["clusters"]] == [6, 4]
    assert [found["terms"] for found in result["clusters"]] == [["flights"], ["pizza"]]
    assert np.load(tmp_path / "clusters.npy").shape == (10, 4)
