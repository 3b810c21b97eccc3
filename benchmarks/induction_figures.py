"""How good induced metrics are, measured on tasks that they were not made from.

For each seed, every quarter of the tasks is held out in turn (of many points, one quarter): metrics are chosen and made
from the others. Points and verdicts of all seeds are pooled, and intervals hold 95 %, trajectories resampled.
Next to coverage and redundancy stand the coverage that perfect verdicts would have, with the same metrics (which points
have a similar example), the stability of the groups over the seeds (mean adjusted Rand index of every two), and, where
the truth is known (AgentRx's categories, the sample's behaviours), how far the groups agree with it, and how often a
point that matches a metric is about what most of the metric is about. "Given the truth" are metrics that are made of
the true groups of the points that are not held out.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from workers.induce.clusters import example_similarity
from workers.induce.grounding import Evidence
from workers.induce.metric_classifier import (
    InducedMetrics,
    induce_baseline,
    induce_from_groups,
    induce_metrics,
)
from workers.induce.metric_report import report_metrics
from workers.induce.metric_selection import HELD_OUT_FOLDS, MAX_SINGLE_POINTS, choose_rounds, hold_out

Interval = tuple[float, float, float]  # a figure, and the limits of its interval
MANY_POINTS = 300  # from which one quarter is held out for each seed
_DRAWS = 2000
_COUNTS = ("points", "covered", "reachable", "verdicts", "used", "right", "right_at_large")


@dataclass
class Tally:
    """counts: by trajectory, of _COUNTS. metrics: of each fold."""

    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    metrics: list[int] = field(default_factory=list)

    def add(
        self, evidence: Evidence, rows: NDArray[np.intp], induced: InducedMetrics, truth: Sequence[str | None]
    ) -> None:
        clusters = induced.clusters
        names = [str(place) for place in range(len(clusters.metrics))]
        report = report_metrics(evidence, rows, induced, names, is_held_out=True)
        signs = report.verdicts.signs.copy()
        signs[:, list(induced.refused)] = 0
        similarity = example_similarity(evidence, rows, clusters.sides)
        usual = [Counter(truth[row] for row in side.rows).most_common(1)[0][0] for side in clusters.sides]
        used: dict[int, set[int]] = defaultdict(set)
        for place, row in enumerate(rows):
            trajectory = int(evidence.trajectory[row])
            count = self.counts[evidence.names[trajectory]]
            nearest = int(similarity[place].argmax())
            reachable = bool(similarity[place, nearest] >= clusters.similarity)
            count["points"] += 1
            count["covered"] += int(report.matches[place] >= 0)
            count["reachable"] += reachable
            count["right"] += reachable and usual[nearest] == truth[row]
            count["right_at_large"] += usual.count(truth[row]) / len(usual)
            if report.matches[place] >= 0:
                used[trajectory].add(int(report.matches[place]))
        for trajectory in np.unique(evidence.trajectory[rows]).tolist():
            count = self.counts[evidence.names[trajectory]]
            count["verdicts"] += int((signs[trajectory] != 0).sum())
            count["used"] += len(used[trajectory])
        self.metrics.append(len(names) - len(induced.refused))

    def share(self, of: str, among: str) -> Interval | None:
        table = np.array([[count[of], count[among]] for count in self.counts.values()], dtype=float)
        return ratio_interval(table)

    def figures(self) -> dict[str, Any]:
        used = self.share("used", "verdicts")
        return {
            "metrics": self.metrics,
            "coverage": self.share("covered", "points"),
            "redundancy": used and (1 - used[0], 1 - used[2], 1 - used[1]),
            "bound": self.share("reachable", "points"),
        }


def measure_evidence(evidence: Evidence, truth: Sequence[str | None], seeds: int) -> dict[str, Any]:
    """truth: of each aspect, or None where it is not known."""
    rows = np.arange(len(evidence.aspects))
    is_known = truth[0] is not None
    folds = HELD_OUT_FOLDS if len(rows) < MANY_POINTS else 1
    tallies: dict[str, Tally] = defaultdict(Tally)
    curves, groups = [], []
    for seed in range(seeds):
        for fold in range(folds):
            train, test = hold_out(evidence, rows, seed, fold=fold)
            rounds, tried = choose_rounds(evidence, train, seed=seed)
            ways = {
                "induced": induce_metrics(evidence, train, rounds, seed=seed),
                "one metric": induce_baseline(evidence, train, (1,), seed=seed),
            }
            if len(train) <= MAX_SINGLE_POINTS:
                ways["one for each point"] = induce_baseline(evidence, train, (len(train),), seed=seed)
            if is_known:
                ways["given the truth"] = induce_from_groups(evidence, _groups_of(truth, train), seed=seed)
            for way, induced in ways.items():
                tallies[way].add(evidence, test, induced, truth)
        curves.append(
            [
                {
                    "sides": list(result.rounds),
                    "metrics": result.metrics,
                    "coverage": result.coverage,
                    "redundancy": result.redundancy,
                }
                for result in tried
            ]
        )
        rounds, _ = choose_rounds(evidence, rows, seed=seed)
        groups.append(_group_of_rows(induce_metrics(evidence, rows, rounds, seed=seed), len(rows)))
    pairs = [adjusted_rand_score(a, b) for a, b in itertools.combinations(groups, 2)]
    labels = [str(label) for label in truth]
    induced_tally = tallies["induced"]
    at_large = induced_tally.share("right_at_large", "points")
    return {
        "aspects": len(rows),
        "ways": {way: tally.figures() for way, tally in tallies.items()},
        "stability": float(np.mean(pairs)) if pairs else None,
        "agreement": _agreement(labels, groups, evidence.trajectory) if is_known else None,
        "right": induced_tally.share("right", "reachable") if is_known else None,
        "right_at_large": at_large[0] if is_known and at_large else None,
        "curves": curves,
    }


def ratio_interval(table: NDArray[np.float64]) -> Interval | None:
    """table: [trajectories, 2], of each its numerator and denominator. None without a denominator."""
    if not table[:, 1].sum():
        return None
    draws = np.random.default_rng(0).integers(len(table), size=(_DRAWS, len(table)))
    sums = table[draws].sum(axis=1)
    ratios = sums[:, 0] / np.maximum(sums[:, 1], 1e-9)
    low, high = np.quantile(ratios[sums[:, 1] > 0], [0.025, 0.975])
    return float(table[:, 0].sum() / table[:, 1].sum()), float(low), float(high)


def jackknife_interval(
    statistic: Callable[[NDArray[np.bool_]], float], trajectories: NDArray[np.intp]
) -> Interval:
    """Of a statistic of the kept points, each trajectory left out in turn; copies, as resampling makes them, would
    count as agreeing pairs."""
    full = statistic(np.ones(len(trajectories), dtype=bool))
    names = np.unique(trajectories)
    without = np.array([statistic(trajectories != name) for name in names])
    error = np.sqrt((len(names) - 1) / len(names) * ((without - without.mean()) ** 2).sum())
    return full, float(full - 1.96 * error), float(full + 1.96 * error)


def _agreement(
    labels: Sequence[str], groups: Sequence[NDArray[np.intp]], trajectories: NDArray[np.intp]
) -> Interval:
    known = np.array(labels)

    def mean_agreement(kept: NDArray[np.bool_]) -> float:
        return float(np.mean([adjusted_rand_score(known[kept], group[kept]) for group in groups]))

    return jackknife_interval(mean_agreement, trajectories)


def _groups_of(truth: Sequence[str | None], rows: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    labels = np.array([str(truth[row]) for row in rows])
    return [rows[labels == label] for label in np.unique(labels)]


def _group_of_rows(induced: InducedMetrics, count: int) -> NDArray[np.intp]:
    group = np.zeros(count, dtype=np.intp)
    for place, side in enumerate(induced.clusters.sides):
        group[side.rows] = place
    return group
