"""Step 4 of an induction: which metrics apply to a trajectory, with which sign.

A metric applies if the probability of one of its sides (`side_classifier`) is high enough: from the level with the best
worth on the aspects that are known, each task judged without its own. No side is given to more than MAX_APPLIED of the
trajectories, the most probable ones: a verdict that all have tells nothing. A metric that still gives all the same is
refused, and counts nowhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from workers.induce.clusters import (
    ClusterTree,
    Metric,
    MetricClusters,
    cluster_metrics,
    example_similarity,
    group_metrics,
)
from workers.induce.grounding import Evidence
from workers.induce.induction_files import DEGENERATE_SHARE, Trait
from workers.induce.side_classifier import SideClassifier
from workers.induce.step_features import DoubleArray, IndexArray, StepVectors

SignArray = NDArray[np.int8]
MAX_APPLIED = 0.9  # of the trajectories that were commented on get a side
_LEVELS = 24  # chances tried as the least at which a metric applies


@dataclass(frozen=True, slots=True)
class InducedMetrics:
    """Metrics with the classifier that judges by them.

    least: [sides], the probability from which a side applies. refused: places of the metrics that do not tell
    trajectories apart.
    """

    clusters: MetricClusters
    classifier: SideClassifier
    least: DoubleArray
    refused: frozenset[int]


@dataclass(frozen=True, slots=True)
class TrajectoryVerdicts:
    """signs: [trajectories, metrics]. traits: every one with its value, trajectory by trajectory."""

    signs: SignArray
    traits: list[tuple[Trait, float]]


def induce_metrics(
    evidence: Evidence,
    rows: IndexArray,
    rounds: Sequence[int],
    *,
    tree: ClusterTree | None = None,
    seed: int = 0,
) -> InducedMetrics:
    """Metrics of these aspects. rounds, tree: as of `cluster_metrics`."""
    return _fit(evidence, rows, cluster_metrics(evidence, rows, rounds, tree=tree, seed=seed), seed)


def induce_baseline(
    evidence: Evidence, rows: IndexArray, rounds: Sequence[int], *, seed: int = 0
) -> InducedMetrics:
    """As `induce_metrics`, but a side may be given to all, and no metric is refused."""
    clusters = cluster_metrics(evidence, rows, rounds, seed=seed)
    return replace(_fit(evidence, rows, clusters, seed, max_applied=1.0), refused=frozenset())


def induce_from_groups(evidence: Evidence, groups: Sequence[IndexArray], *, seed: int = 0) -> InducedMetrics:
    """Metrics that someone decided on: each group of aspects, none empty, is one."""
    rows = np.sort(np.concatenate(groups))
    return _fit(evidence, rows, group_metrics(evidence, groups, seed=seed), seed)


def _fit(
    evidence: Evidence,
    rows: IndexArray,
    clusters: MetricClusters,
    seed: int,
    *,
    max_applied: float = MAX_APPLIED,
) -> InducedMetrics:
    """least: of the level with the best worth on the aspects it was fitted on, each task judged without its own."""
    classifier = SideClassifier(evidence, clusters.sides, rows, seed=seed)
    commented = np.unique(evidence.trajectory[rows])
    probabilities = classifier.probabilities(evidence.steps, evidence.tasks)
    caps = np.quantile(probabilities[commented], 1 - max_applied, axis=0)
    similarity = example_similarity(evidence, rows, clusters.sides)
    best, least = -1.0, caps
    for level in np.unique(np.quantile(probabilities[commented], np.linspace(0.2, 0.995, _LEVELS))):
        signs = metric_signs(probabilities, clusters.metrics, np.maximum(level, caps))
        value = metric_worth(
            *_coverage_and_redundancy(evidence, rows, clusters, signs, commented, similarity)
        )
        if value > best:
            best, least = value, np.maximum(level, caps)
    signs = metric_signs(probabilities[commented], clusters.metrics, least)
    return InducedMetrics(clusters, classifier, least, degenerate_metrics(signs))


def degenerate_metrics(signs: SignArray) -> frozenset[int]:
    """signs: [trajectories, metrics]. The metrics that apply to none, or are good, or bad, on nearly all."""
    shares = np.array([(signs == sign).mean(axis=0) for sign in (1, -1)])
    found = (shares.sum(axis=0) == 0) | (shares.max(axis=0) >= DEGENERATE_SHARE)
    return frozenset(np.flatnonzero(found).tolist())


def judge_trajectories(
    induced: InducedMetrics,
    steps: StepVectors,
    trajectories: Sequence[str],
    tasks: Sequence[str],
    metric_names: Sequence[str],
) -> TrajectoryVerdicts:
    classifier, metrics = induced.classifier, induced.clusters.metrics
    scores, step_numbers, exemplars = classifier.scores(steps, tasks)
    probabilities = classifier.calibration(scores)
    signs = metric_signs(probabilities, metrics, induced.least)
    traits: list[tuple[Trait, float]] = []
    for row, trajectory in enumerate(trajectories):
        for place, metric in enumerate(metrics):
            sides = {1: metric.good, -1: metric.bad}
            value = sum(sign * probabilities[row, side] for sign, side in sides.items() if side is not None)
            sign = int(signs[row, place])
            side, step, because = sides.get(sign), None, None
            if side is not None and step_numbers[row, side] >= 0:
                step = int(step_numbers[row, side])
                because = int(classifier.exemplar_aspects[side][exemplars[row, side]])
            trait = Trait(
                trajectory=trajectory, metric=metric_names[place], sign=sign, step=step, because=because
            )
            traits.append((trait, float(value)))
    return TrajectoryVerdicts(signs, traits)


def evaluate_metrics(evidence: Evidence, rows: IndexArray, induced: InducedMetrics) -> tuple[float, float]:
    """Coverage of these aspects, and redundancy of the traits of their trajectories."""
    probabilities = induced.classifier.probabilities(evidence.steps, evidence.tasks)
    signs = metric_signs(probabilities, induced.clusters.metrics, induced.least)
    signs[:, list(induced.refused)] = 0
    commented = np.unique(evidence.trajectory[rows])
    similarity = example_similarity(evidence, rows, induced.clusters.sides)
    return _coverage_and_redundancy(evidence, rows, induced.clusters, signs, commented, similarity)


def match_aspects(
    evidence: Evidence,
    rows: IndexArray,
    clusters: MetricClusters,
    signs: SignArray,
    similarity: DoubleArray | None = None,
) -> IndexArray:
    """The metric each aspect is matched to among those that apply to its trajectory with its sign, or -1.

    signs: [all trajectories of the evidence, metrics]. similarity: `example_similarity` of the rows.
    """
    if similarity is None:
        similarity = example_similarity(evidence, rows, clusters.sides)
    best = np.full(len(rows), -1, dtype=np.intp)
    highest = np.full(len(rows), clusters.similarity)
    for place, metric in enumerate(clusters.metrics):
        for side, sign in ((metric.good, 1), (metric.bad, -1)):
            if side is None:
                continue
            here = (signs[evidence.trajectory[rows], place] == sign) & (similarity[:, side] >= highest)
            best[here], highest[here] = place, similarity[here, side]
    return best


def _coverage_and_redundancy(
    evidence: Evidence,
    rows: IndexArray,
    clusters: MetricClusters,
    signs: SignArray,
    trajectories: IndexArray,
    similarity: DoubleArray,
) -> tuple[float, float]:
    """Coverage of these aspects, redundancy of the traits of these trajectories; 1 where there is no trait."""
    best = match_aspects(evidence, rows, clusters, signs, similarity)
    used = np.zeros_like(signs, dtype=bool)
    used[evidence.trajectory[rows[best >= 0]], best[best >= 0]] = True
    applying = int((signs[trajectories] != 0).sum())
    coverage = float((best >= 0).mean()) if len(rows) else 0.0
    return coverage, 1 - int(used[trajectories].sum()) / applying if applying else 1.0


def metric_worth(coverage: float, redundancy: float) -> float:
    """The harmonic mean of coverage and 1 - redundancy."""
    both = coverage + 1 - redundancy
    return 2 * coverage * (1 - redundancy) / both if both > 0 else 0.0


def metric_signs(chances: DoubleArray, metrics: Sequence[Metric], least: DoubleArray) -> SignArray:
    """[trajectories, metrics]: 1, -1, or 0 where neither side is as likely as its least. chances: [trajectories,
    sides]."""
    out = np.zeros((len(chances), len(metrics)), dtype=np.int8)
    applying = np.where(chances >= least, chances, -1.0)
    none = np.full(len(chances), -1.0)
    for place, metric in enumerate(metrics):
        good = applying[:, metric.good] if metric.good is not None else none
        bad = applying[:, metric.bad] if metric.bad is not None else none
        out[:, place] = np.where(np.maximum(good, bad) < 0, 0, np.where(good >= bad, 1, -1))
    return out
