"""The first error of a trajectory: the true one, and the one that scores of steps say."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from workers.evaluate.predictions import ScoredRecord
from workers.models import ModelScore

Found = tuple[int | None, int | None]  # first error: true, predicted; None is "no error"


def process_bench_f1(found: Sequence[Found]) -> float | None:
    """Harmonic mean of the accuracy where there is an error (its place must be right) and where there is none.

    None unless there are both.
    """
    wrong = [predicted == true for true, predicted in found if true is not None]
    fine = [predicted is None for true, predicted in found if true is None]
    if not wrong or not fine:
        return None
    first, second = float(np.mean(wrong)), float(np.mean(fine))
    return 2 * first * second / (first + second) if first + second else 0.0


def step_scores(score: ModelScore) -> list[float]:
    """By agent step: the probability that it is good, else its reward. A dropped step can not be called wrong."""
    if score.labels is None:
        dropped = set(score.dropped)
        return [
            float("inf") if step in dropped else step_reward
            for step, step_reward in enumerate(score.step_rewards)
        ]
    return [float("inf") if label is None else label["good"] for label in score.labels]


def first_below(scores: Sequence[float], threshold: float) -> int | None:
    return next((step for step, score in enumerate(scores) if score < threshold), None)


def best_threshold(validation: Sequence[ScoredRecord]) -> float:
    """With the highest F1 (accuracy, where one side is missing); one half for probabilities, 0 for rewards without."""
    if not validation:
        return 0.5
    scores = [step_scores(scored.scores[0]) for scored in validation]
    true = [true_first_error(scored) for scored in validation]
    is_labels = validation[0].scores[0].labels is not None
    every = sorted({score for step_score in scores for score in step_score if np.isfinite(score)})
    if not every:
        return 0.5 if is_labels else 0.0
    middles = [
        every[0] - 1e-6,
        *((a + b) / 2 for a, b in pairwise(every)),
        every[-1] + 1e-6,
    ]
    candidates = middles[:: max(1, len(middles) // 400)]

    def quality(threshold: float) -> float:
        found = [(t, first_below(score, threshold)) for t, score in zip(true, scores, strict=True)]
        f1 = process_bench_f1(found)
        return float(np.mean([t == p for t, p in found])) if f1 is None else f1

    return float(max(candidates, key=quality))


def true_first_error(scored: ScoredRecord) -> int | None:
    first: int | None = scored.record.first_error
    return first
