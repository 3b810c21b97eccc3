"""Two reward models on the same records: who is right where the other is wrong, and how far apart their rewards are."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from workers.evaluate.bootstrap import difference_interval, task_count
from workers.evaluate.mistakes import prediction_to_json
from workers.evaluate.predictions import RecordScorer, ScoredRecord
from workers.evaluate.preference import Prediction, correctness, predictions
from workers.schema import FeedbackRecord
from workers.schema.records import record_trajectories

_SHOWN = 20


def compare(scorer: RecordScorer, other: RecordScorer, records: Sequence[FeedbackRecord]) -> dict[str, Any]:
    """{difference, interval, n, tasks, flips: {won, lost, examples}, distance}: ours minus `other`, paired, by task.

    pointwise, where either model judges two trajectories together: {difference, interval, n} of single scores.
    """
    ours, theirs = scorer(records), other(records)
    by = scorer.model.compared_by
    first, second = predictions(ours, by), predictions(theirs, by)
    compared = compare_predictions(first, second)
    if any(prediction.compared for prediction in (*first, *second)):
        alone = compare_predictions(
            [prediction.pointwise for prediction in first], [prediction.pointwise for prediction in second]
        )
        compared["pointwise"] = {key: alone[key] for key in ("difference", "interval", "n")}
    return compared | {"distance": reward_distance(ours, theirs)}


def compare_predictions(ours: Sequence[Prediction], theirs: Sequence[Prediction]) -> dict[str, Any]:
    """The same comparisons in the same order. flips: where one is right and the other wrong."""
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a.is_strict]
    if not pairs:
        return {
            "difference": None,
            "interval": None,
            "n": 0,
            "tasks": 0,
            "flips": {"won": 0, "lost": 0, "examples": []},
        }
    tasks = [a.record.a.task.id for a, _ in pairs]
    difference, interval = difference_interval(
        [correctness(a.margin) for a, _ in pairs], [correctness(b.margin) for _, b in pairs], tasks
    )
    won = [(a, b) for a, b in pairs if a.margin > 0 > b.margin]
    lost = [(a, b) for a, b in pairs if b.margin > 0 > a.margin]
    widest = sorted([*won, *lost], key=lambda both: -abs(both[0].margin - both[1].margin))[:_SHOWN]
    examples = [prediction_to_json(a) | {"other_margin": b.margin, "won": a.margin > 0} for a, b in widest]
    return {
        "difference": difference,
        "interval": interval,
        "n": len(pairs),
        "tasks": task_count(tasks),
        "flips": {"won": len(won), "lost": len(lost), "examples": examples},
    }


def reward_distance(ours: Sequence[ScoredRecord], theirs: Sequence[ScoredRecord]) -> float | None:
    """sqrt((1 - rho) / 2) in 0..1, rho the Pearson correlation of the rewards after each is centred in its task.

    0: the same up to scale and a constant for each task; 1: opposite. STARC (arXiv 2309.15257), section 4, with the
    mean over a task's trajectories in the place of the value that shaping could have added; the distance is EPIC's
    (arXiv 2006.13900), definition 4.1. None where a task never has two trajectories, or rewards do not vary in any.
    """
    by_task: dict[str, dict[str, tuple[float, float]]] = defaultdict(dict)
    for our, other in zip(ours, theirs, strict=True):
        for side, a, b in zip(record_trajectories(our.record), our.scores, other.scores, strict=True):
            by_task[our.task][side.content_hash] = (a.raw, b.raw)
    groups = [np.array(list(found.values())) for found in by_task.values() if len(found) > 1]
    if not groups:
        return None
    centred = np.concatenate([group - group.mean(0) for group in groups])
    norms = np.linalg.norm(centred, axis=0)
    if not norms.all():
        return None
    rho = float(centred[:, 0] @ centred[:, 1] / norms.prod())
    return float(np.sqrt(max(0.0, 1 - rho) / 2))
