"""Clusters in a folder.

config.json    `ClusterConfig`
vectors.npy    [trajectories, hidden] float32: the mean embedding of each
texts.json     {row: text} of a sample of the rows, by which clusters are named
clusters.npy   [trajectories, 4] float64: cluster, x, y, and the cosine distance to the centre
result.json    {"clusters": [{"terms", "count"}], "silhouette"}, the largest cluster first

k-means on the unit sphere; without a number of clusters the one of the highest mean silhouette (Rousseeuw, 1987) on a
sample. Terms by class-based TF-IDF (BERTopic, Grootendorst, 2022: https://arxiv.org/abs/2203.05794). The map is the
first two principal components.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import silhouette_score

from workers.errors import RewardError
from workers.json_files import write_json

TRIED = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20)
MAX_CLUSTERS = 50
TERMS = 5  # of a cluster
_SILHOUETTE_SAMPLE = 2000
_MAX_TERMS = 20_000
_WORD = r"(?u)\b[^\W\d_][\w-]+\b"
FloatArray = NDArray[np.float64]


class ClusterConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """cluster_count: None to choose it."""

    cluster_count: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ClusterResult:
    """cluster: [rows], 0 the largest. places: [rows, 2]. distance: [rows], by cosine to the centre of the cluster.
    silhouette: mean, -1 to 1; None for one cluster."""

    cluster: NDArray[np.intp]
    places: FloatArray
    distance: FloatArray
    silhouette: float | None


def cluster_folder(folder: Path) -> dict[str, Any]:
    """Everything between config.json and result.json; the result. Raises RewardError."""
    config = msgspec.json.decode((folder / "config.json").read_bytes(), type=ClusterConfig)
    vectors = np.load(folder / "vectors.npy", allow_pickle=False).astype(np.float64)
    texts = {int(row): text for row, text in json.loads((folder / "texts.json").read_text("utf-8")).items()}
    found = cluster_rows(vectors, config.cluster_count, seed=config.seed)
    np.save(
        folder / "clusters.npy",
        np.column_stack([found.cluster.astype(np.float64), found.places, found.distance]),
        allow_pickle=False,
    )
    counts = np.bincount(found.cluster).tolist()
    terms = cluster_terms(found.cluster, texts)
    result = {
        "clusters": [
            {"terms": terms.get(cluster, []), "count": count} for cluster, count in enumerate(counts)
        ],
        "silhouette": found.silhouette,
    }
    write_json(folder / "result.json", result)
    return result


def cluster_rows(vectors: FloatArray, count: int | None = None, *, seed: int = 0) -> ClusterResult:
    """vectors: [rows, hidden]. Raises RewardError for fewer than three rows, or more clusters than different rows."""
    if len(vectors) < 3:
        raise RewardError(f"There are {len(vectors)} trajectories with embeddings; clusters need at least 3.")
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    different = len(np.unique(unit.round(6), axis=0))
    if count is not None and not 2 <= count <= min(MAX_CLUSTERS, different):
        raise RewardError(
            f"{count} clusters of {different} different trajectories; choose 2 to {min(MAX_CLUSTERS, different)}.",
            pointer="/cluster_count",
        )
    if different < 3:
        labels = np.zeros(len(unit), dtype=np.intp)
    else:
        chosen = count or _best_count(unit, different, seed)
        labels = _fit(unit, chosen, seed)
    labels = _largest_first(labels)
    centres = np.stack([unit[labels == cluster].mean(axis=0) for cluster in range(labels.max() + 1)])
    centres /= np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-12)
    distance = 1.0 - np.einsum("ij,ij->i", unit, centres[labels])
    return ClusterResult(labels, _places(unit), np.maximum(distance, 0.0), _silhouette(unit, labels, seed))


def _fit(unit: FloatArray, count: int, seed: int) -> NDArray[np.intp]:
    return KMeans(count, n_init=3, random_state=seed).fit_predict(unit).astype(np.intp)


def _best_count(unit: FloatArray, different: int, seed: int) -> int:
    """On a sample of the rows."""
    rows = np.random.default_rng(seed).permutation(len(unit))[:_SILHOUETTE_SAMPLE]
    sample = unit[rows]
    tried = [count for count in TRIED if count < min(different, len(sample))]
    scores = {count: _silhouette(sample, _fit(sample, count, seed), seed) or -1.0 for count in tried}
    return max(scores, key=lambda count: (scores[count], -count)) if scores else 2


def _silhouette(unit: FloatArray, labels: NDArray[np.intp], seed: int) -> float | None:
    rows = np.random.default_rng(seed).permutation(len(unit))[:_SILHOUETTE_SAMPLE]
    if not 2 <= len(np.unique(labels[rows])) < len(rows):
        return None
    return float(silhouette_score(unit[rows], labels[rows], metric="cosine"))


def _largest_first(labels: NDArray[np.intp]) -> NDArray[np.intp]:
    values, counts = np.unique(labels, return_counts=True)
    order = values[np.argsort(-counts, kind="stable")]
    renamed = np.empty(values.max() + 1, dtype=np.intp)
    renamed[order] = np.arange(len(order))
    return renamed[labels]


def _places(unit: FloatArray) -> FloatArray:
    """[rows, 2]: the first two principal components, by the covariance, which is small whatever the rows are."""
    flat = unit - unit.mean(axis=0)
    axes = np.linalg.eigh(flat.T @ flat)[1][:, ::-1][:, :2]
    places = np.zeros((len(unit), 2))
    places[:, : axes.shape[1]] = flat @ axes
    return places


def cluster_terms(
    cluster: Sequence[int] | NDArray[np.intp], texts: Mapping[int, str]
) -> dict[int, list[str]]:
    """The terms of each cluster that its texts use more than all texts do, the most telling first. None where no text
    is known."""
    documents: dict[int, list[str]] = {}
    for row, text in texts.items():
        documents.setdefault(int(cluster[row]), []).append(text)
    if not documents:
        return {}
    names = sorted(documents)
    counter = CountVectorizer(
        stop_words="english",
        ngram_range=(1, 2),
        max_features=_MAX_TERMS,
        token_pattern=_WORD,
    )
    try:
        counts = counter.fit_transform(["\n".join(documents[name]) for name in names]).toarray().astype(float)
    except ValueError:  # only stop words
        return {}
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    weight = np.log1p(counts.sum() / len(names) / np.maximum(counts.sum(axis=0), 1e-12))
    scores, terms = share * weight, counter.get_feature_names_out()
    return {name: _distinct(terms, scores[place]) for place, name in enumerate(names)}


def _distinct(terms: NDArray[Any], scores: FloatArray) -> list[str]:
    """The best, without those that are part of one before or contain it."""
    found: list[str] = []
    for place in np.argsort(-scores, kind="stable"):
        if scores[place] <= 0 or len(found) == TERMS:
            break
        term = str(terms[place])
        if not any(set(term.split()) & set(other.split()) for other in found):
            found.append(term)
    return found
