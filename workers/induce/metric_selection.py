"""Step 5 of an induction: the number of metrics, chosen and tested on held-out tasks.

Coverage falls with too few metrics, whose few examples cannot represent everything, and redundancy rises with too many,
which are judged where no one asked. The number is the one with the highest harmonic mean of coverage and 1 - redundancy
over three folds by task, less a small penalty, since people have to read every metric. Metrics that do not distinguish
trajectories do not count, so that one for everything is seldom the best. Then what is left uncovered is clustered
separately, and added while coverage rises.

The likelihood of held-out points in the space they are clustered in was tried instead. It rises with the number, or is
highest at one, because comments on real trajectories form no dense groups.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workers.induce.clusters import build_tree
from workers.induce.grounding import Evidence
from workers.induce.metric_classifier import (
    InducedMetrics,
    evaluate_metrics,
    induce_baseline,
    induce_metrics,
    metric_worth,
)
from workers.induce.metric_report import report_metrics
from workers.induce.step_features import IndexArray

FOLDS = 3
MAX_ROUNDS = 3
SIDE_COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 64)  # of sides that are tried
FURTHER_COUNTS = (1, 2, 3, 4, 6)  # of sides that a later round adds
NUMBER_PENALTY = 0.01  # of the harmonic mean for each doubling of the number
MIN_COVERAGE_GAIN = 0.01  # of held-out coverage, for another round
HELD_OUT_FOLDS = 4  # one of them is held out
MAX_SINGLE_POINTS = 300  # points up to which one metric per comment is tried as a baseline


@dataclass(frozen=True, slots=True)
class RoundsResult:
    """Means over the folds. rounds: the number of sides of each round."""

    rounds: tuple[int, ...]
    metrics: float
    coverage: float
    redundancy: float

    @property
    def worth(self) -> float:
        return metric_worth(self.coverage, self.redundancy)


def select_metrics(evidence: Evidence, rows: IndexArray, seed: int) -> dict[str, Any]:
    """The number of metrics, chosen without one task in HELD_OUT_FOLDS, and how good they are on that."""
    train, test = hold_out(evidence, rows, seed)
    chosen, tried = choose_rounds(evidence, train, seed=seed)
    baselines = {"one metric": (1,)}
    if len(train) <= MAX_SINGLE_POINTS:
        baselines["one for each point"] = (len(train),)

    def evaluate(induced: InducedMetrics) -> dict[str, Any]:
        names = [str(place) for place in range(len(induced.clusters.metrics))]
        report = report_metrics(evidence, test, induced, names, is_held_out=True)
        return {
            "metrics": len(names),
            **report.meta.shares,
            "n": report.meta.aspects,
            "traits": report.meta.traits,
            "trajectories": len(set(evidence.trajectory[test].tolist())),
        }

    return {
        "rounds": chosen,
        "held_out": evaluate(induce_metrics(evidence, train, chosen, seed=seed)),
        "baselines": {
            name: evaluate(induce_baseline(evidence, train, rounds, seed=seed))
            for name, rounds in baselines.items()
        },
        "curve": [
            {
                "sides": list(result.rounds),
                "metrics": result.metrics,
                "coverage": result.coverage,
                "redundancy": result.redundancy,
                "worth": result.worth,
            }
            for result in tried
        ],
    }


def hold_out(
    evidence: Evidence, rows: IndexArray, seed: int, *, fold: int = 0
) -> tuple[IndexArray, IndexArray]:
    """The rows to induce from, and one of HELD_OUT_FOLDS by task, or none where it would be all."""
    folds = split_by_task(evidence, rows, HELD_OUT_FOLDS, seed)
    train, test = rows[folds != fold], rows[folds == fold]
    return (train, test) if len(train) and len(test) else (rows, rows[:0])


def choose_rounds(
    evidence: Evidence, rows: IndexArray, *, seed: int = 0
) -> tuple[tuple[int, ...], list[RoundsResult]]:
    """The rounds to induce with, and everything that was tried."""
    folds = split_by_task(evidence, rows, FOLDS, seed)
    parts = [(rows[folds != fold], rows[folds == fold]) for fold in range(FOLDS)]
    parts = [(train, test) for train, test in parts if len(train) and len(test)]
    if not parts:
        return (2,), []
    trees = [build_tree(evidence, train, seed=seed) for train, _ in parts]
    tried: list[RoundsResult] = []

    def evaluate(rounds: tuple[int, ...]) -> RoundsResult:
        found = []
        for (train, test), tree in zip(parts, trees, strict=True):
            induced = induce_metrics(evidence, train, rounds, tree=tree, seed=seed)
            found.append((len(induced.clusters.metrics), *evaluate_metrics(evidence, test, induced)))
        metrics, coverage, redundancy = np.mean(found, axis=0)
        tried.append(RoundsResult(rounds, float(metrics), float(coverage), float(redundancy)))
        return tried[-1]

    max_count = max(1, *(tree.leaves for tree in trees))
    first = [evaluate((count,)) for count in SIDE_COUNTS if count <= max_count]
    best = max(first, key=lambda result: result.worth - NUMBER_PENALTY * math.log2(result.metrics))
    while len(best.rounds) < MAX_ROUNDS:
        further = [evaluate((*best.rounds, count)) for count in FURTHER_COUNTS]
        next_best = max(further, key=lambda result: (result.coverage, result.worth))
        if next_best.coverage < best.coverage + MIN_COVERAGE_GAIN or next_best.worth < best.worth:
            break
        best = next_best
    return best.rounds, tried


def split_by_task(evidence: Evidence, rows: IndexArray, folds: int, seed: int) -> IndexArray:
    """[rows]: a fold for each aspect, by the task of its trajectory, or by trajectory where the tasks are too few."""
    trajectories = evidence.trajectory[rows].tolist()
    tasks = [evidence.tasks[index] for index in trajectories]
    return assign_folds(tasks, [evidence.names[index] for index in trajectories], folds, seed)


def assign_folds(tasks: Sequence[str], trajectories: Sequence[str], folds: int, seed: int) -> IndexArray:
    """[n]: a fold for each of n things of which task and trajectory are given, as `split_by_task`."""
    names = tasks if len(set(tasks)) >= 2 * folds else trajectories
    distinct = sorted(set(names))
    order = np.random.default_rng(seed).permutation(len(distinct))
    fold = {name: int(order[place]) % folds for place, name in enumerate(distinct)}
    return np.array([fold[name] for name in names], dtype=np.intp)
