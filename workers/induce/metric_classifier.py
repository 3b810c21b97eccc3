"""Step 4 of an induction: which metrics apply to a trajectory, with which sign.

A side of a metric, its praise or its blame, is known by the steps its points are about. A trajectory shows it if one of
its steps is nearer to those (mean distance to the three nearest) than to steps in general. The distance is turned into
the probability that someone comments so (Platt 1999), fitted on the trajectories that people commented on, each judged
without the comments on its own task. No language model is asked, and no word of the trajectory's own comments is read.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from workers.induce.clusters import (
    ClusterTree,
    Metric,
    MetricClusters,
    MetricSide,
    cluster_metrics,
    example_similarity,
    group_metrics,
)
from workers.induce.grounding import Evidence
from workers.induce.induction_files import Trait
from workers.induce.step_features import DoubleArray, FloatArray, IndexArray, StepVectors

SignArray = NDArray[np.int8]
NEIGHBOURS = 3
MOST_EXEMPLARS = 100  # of a side
MOST_BACKGROUND = 600
_LEVELS = 24  # chances tried as the least at which a metric applies
_WEIGHTS = (0.5, 0.5, 0.3)  # of what was done, what came back, and how the step was
_FAR = 1e3
_BLOCK = 4000


@dataclass(frozen=True, slots=True)
class InducedMetrics:
    """Metrics with the classifier that judges by them. least: the probability from which a metric applies."""

    clusters: MetricClusters
    classifier: "MetricClassifier"
    least: float


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


def induce_from_groups(evidence: Evidence, groups: Sequence[IndexArray], *, seed: int = 0) -> InducedMetrics:
    """Metrics that someone decided on: each group of aspects, none empty, is one."""
    rows = np.sort(np.concatenate(groups))
    return _fit(evidence, rows, group_metrics(evidence, groups, seed=seed), seed)


def _fit(evidence: Evidence, rows: IndexArray, clusters: MetricClusters, seed: int) -> InducedMetrics:
    """least: of the level with the best worth on the aspects it was fitted on, each task judged without its own."""
    classifier = MetricClassifier(evidence, clusters.sides, rows, seed=seed)
    commented = np.unique(evidence.trajectory[rows])
    probabilities = classifier.probabilities(evidence.steps, evidence.tasks)
    best, least = -1.0, 0.5
    for level in np.unique(np.quantile(probabilities[commented], np.linspace(0.2, 0.995, _LEVELS))):
        signs = metric_signs(probabilities, clusters.metrics, float(level))
        value = metric_worth(*_coverage_and_redundancy(evidence, rows, clusters, signs, commented))
        if value > best:
            best, least = value, float(level)
    return InducedMetrics(clusters, classifier, least)


def judge_trajectories(
    induced: InducedMetrics,
    steps: StepVectors,
    trajectories: Sequence[str],
    tasks: Sequence[str],
    metric_names: Sequence[str],
) -> TrajectoryVerdicts:
    classifier, metrics = induced.classifier, induced.clusters.metrics
    scores, step_numbers, exemplars = classifier.scores(steps, tasks)
    probabilities = classifier.calibrate(scores)
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
    commented = np.unique(evidence.trajectory[rows])
    return _coverage_and_redundancy(evidence, rows, induced.clusters, signs, commented)


def match_aspects(
    evidence: Evidence, rows: IndexArray, clusters: MetricClusters, signs: SignArray
) -> IndexArray:
    """The metric each aspect is matched to among those that apply to its trajectory with its sign, or -1.

    signs: [all trajectories of the evidence, metrics].
    """
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
    evidence: Evidence, rows: IndexArray, clusters: MetricClusters, signs: SignArray, trajectories: IndexArray
) -> tuple[float, float]:
    """Coverage of these aspects, redundancy of the traits of these trajectories; 1 where there is no trait."""
    best = match_aspects(evidence, rows, clusters, signs)
    used = np.zeros_like(signs, dtype=bool)
    used[evidence.trajectory[rows[best >= 0]], best[best >= 0]] = True
    applying = int((signs[trajectories] != 0).sum())
    coverage = float((best >= 0).mean()) if len(rows) else 0.0
    return coverage, 1 - int(used[trajectories].sum()) / applying if applying else 1.0


def metric_worth(coverage: float, redundancy: float) -> float:
    """The harmonic mean of coverage and 1 - redundancy."""
    both = coverage + 1 - redundancy
    return 2 * coverage * (1 - redundancy) / both if both > 0 else 0.0


class MetricClassifier:
    """Fitted on `rows`: the aspects that may be known."""

    def __init__(
        self, evidence: Evidence, sides: Sequence[MetricSide], rows: IndexArray, *, seed: int = 0
    ) -> None:
        generator = np.random.default_rng(seed)
        self._task = {name: number for number, name in enumerate(dict.fromkeys(evidence.tasks))}
        points = _weighted_vectors(evidence.steps)
        tasks = np.array([self._task[evidence.tasks[of]] for of in evidence.steps.trajectory], dtype=np.intp)
        self.exemplars: list[FloatArray] = []
        self.exemplar_tasks: list[IndexArray] = []
        self.exemplar_aspects: list[IndexArray] = []
        for side in sides:
            known = side.rows[evidence.step[side.rows] >= 0]
            if len(known) > MOST_EXEMPLARS:
                known = np.sort(generator.choice(known, MOST_EXEMPLARS, replace=False))
            at = evidence.step[known]
            self.exemplars.append(points[at])
            self.exemplar_tasks.append(tasks[at])
            self.exemplar_aspects.append(known)
        commented = np.unique(evidence.trajectory[rows])
        at_large = np.flatnonzero(np.isin(evidence.steps.trajectory, commented))
        at_large = np.sort(generator.permutation(at_large)[:MOST_BACKGROUND])
        self.background, self.background_tasks = points[at_large], tasks[at_large]
        self.calibration = np.zeros((len(sides), 4))  # mean, scale, slope, intercept
        self._fit_calibration(evidence, sides, commented)

    def scores(self, steps: StepVectors, tasks: Sequence[str]) -> tuple[DoubleArray, IndexArray, IndexArray]:
        """[trajectories, sides]: how near the nearest step is; its `step`, or -1; and the nearest exemplar, or -1.

        tasks: of the trajectories; exemplars of a trajectory's own task do not count.
        """
        count, sides = len(tasks), len(self.exemplars)
        best = np.full((count, sides), -_FAR)
        where, which = np.full((2, count, sides), -1, dtype=np.intp)
        numbers = np.array([self._task.get(task, -1) for task in tasks], dtype=np.intp)
        points = _weighted_vectors(steps)
        for start in range(0, len(points), _BLOCK):
            block = slice(start, start + _BLOCK)
            of = steps.trajectory[block]
            own = numbers[of]
            usual = _nearest_exemplars(points[block], self.background, own, self.background_tasks)[0]
            usual = np.where(usual < _FAR, usual, 0.0)
            for side, (there, theirs) in enumerate(zip(self.exemplars, self.exemplar_tasks, strict=True)):
                if not len(there):
                    continue
                far, nearest = _nearest_exemplars(points[block], there, own, theirs)
                score = np.where(far < _FAR, usual - far, -_FAR)
                order = np.lexsort((-score, of))
                firsts = order[np.unique(of[order], return_index=True)[1]]
                better = firsts[score[firsts] > best[of[firsts], side]]
                best[of[better], side] = score[better]
                where[of[better], side] = steps.number[block][better]
                which[of[better], side] = nearest[better]
        return best, where, which

    def probabilities(self, steps: StepVectors, tasks: Sequence[str]) -> DoubleArray:
        """[trajectories, sides], calibrated."""
        return self.calibrate(self.scores(steps, tasks)[0])

    def calibrate(self, scores: DoubleArray) -> DoubleArray:
        """[trajectories, sides]: the probability that someone who comments on the trajectory mentions this."""
        mean, scale, slope, intercept = self.calibration.T
        found: DoubleArray = 1 / (1 + np.exp(-(slope * np.clip((scores - mean) / scale, -8, 8) + intercept)))
        return found

    def _fit_calibration(
        self, evidence: Evidence, sides: Sequence[MetricSide], commented: IndexArray
    ) -> None:
        scores = self.scores(evidence.steps, evidence.tasks)[0][commented]
        for place, side in enumerate(sides):
            mentioned = np.isin(commented, np.unique(evidence.trajectory[side.rows]))
            yes, no = int(mentioned.sum()), int((~mentioned).sum())
            share = np.where(mentioned, (yes + 1) / (yes + 2), 1 / (no + 2))
            known = scores[:, place] > -_FAR
            if not known.any() or not no or not yes:
                even = (yes + 1) / (yes + no + 2)
                self.calibration[place] = (0.0, 1.0, 0.0, float(np.log(even / (1 - even))))
                continue
            mean, scale = float(scores[known, place].mean()), float(scores[known, place].std()) + 1e-6
            x = np.clip((scores[:, place] - mean) / scale, -8, 8)
            fitted = LogisticRegression(C=1.0).fit(
                np.concatenate([x, x])[:, None],
                np.concatenate([np.ones(len(x)), np.zeros(len(x))]),
                sample_weight=np.concatenate([share, 1 - share]),
            )
            slope, intercept = float(fitted.coef_[0, 0]), float(fitted.intercept_[0])
            self.calibration[place] = (mean, scale, max(slope, 0.0), intercept)


def metric_signs(chances: DoubleArray, metrics: Sequence[Metric], least: float) -> SignArray:
    """[trajectories, metrics]: 1, -1, or 0 where neither side is as likely as `least`."""
    out = np.zeros((len(chances), len(metrics)), dtype=np.int8)
    none = np.zeros(len(chances))
    for place, metric in enumerate(metrics):
        good = chances[:, metric.good] if metric.good is not None else none
        bad = chances[:, metric.bad] if metric.bad is not None else none
        out[:, place] = np.where(np.maximum(good, bad) < least, 0, np.where(good >= bad, 1, -1))
    return out


def _weighted_vectors(steps: StepVectors) -> FloatArray:
    action, observation, flag = _WEIGHTS
    return np.concatenate(
        [action * steps.actions, observation * steps.observations, flag * steps.flags], axis=1
    )


def _nearest_exemplars(
    points: FloatArray, there: FloatArray, own: IndexArray, theirs: IndexArray
) -> tuple[DoubleArray, IndexArray]:
    """The mean distance to the nearest few, and the nearest; those of the own task are far."""
    squared = (points**2).sum(axis=1)[:, None] + (there**2).sum(axis=1)[None] - 2 * points @ there.T
    far = np.sqrt(np.maximum(squared, 0))
    far[own[:, None] == theirs[None]] = _FAR
    few = min(NEIGHBOURS, far.shape[1])
    near = np.partition(far, few - 1, axis=1)[:, :few].astype(float)
    near = np.where(near >= _FAR, np.nan, near)
    none = np.isnan(near).all(axis=1)
    near[none] = _FAR
    return np.nanmean(near, axis=1), far.argmin(axis=1)
