"""Where a trajectory first goes wrong, and which steps are good."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from workers.evaluate.bootstrap import difference_interval, mean_interval, statistic_interval, task_count
from workers.evaluate.learned_baselines import LinearScores
from workers.evaluate.mistakes import Wrong, worst_records
from workers.evaluate.predictions import ScoredRecord
from workers.models import ModelScore
from workers.objectives.process import known_labels
from workers.schema import FeedbackRecord, StepLabelRecord

Found = tuple[int | None, int | None]  # first error: true, predicted; None is "no error"


def steps_report(
    scored_records: Sequence[ScoredRecord],
    validation: Sequence[ScoredRecord],
    linear: LinearScores | None = None,
) -> dict[str, Any] | None:
    """{first_error_accuracy, interval, f1, f1_interval, n, errors, threshold, baselines, located, labels, mistakes};
    None without labels.

    A step is called an error where its score (P(good) with a label head, else the step reward) is below the threshold
    that is best on `validation`. f1: ProcessBench (arXiv 2412.06559), section 3.2. located: of the trajectories with an
    error, whether the step with the lowest score is the first one, as Who&When (arXiv 2505.00212) asks. mistakes: first
    errors not found, the surest first. linear: one more baseline, where it has all of them.
    """
    labelled = [scored for scored in scored_records if isinstance(scored.record, StepLabelRecord)]
    if not labelled:
        return None
    firsts = [scored for scored in labelled if scored.record.has_first_error]
    report: dict[str, Any] = {"labels": _labels_report(labelled)}
    if not firsts:
        return report
    known = [
        scored
        for scored in validation
        if isinstance(scored.record, StepLabelRecord) and scored.record.has_first_error
    ]
    threshold = best_threshold(known)
    found = [(_true(scored), first_below(step_scores(scored.scores[0]), threshold)) for scored in firsts]
    tasks = [scored.task for scored in firsts]
    right = [float(true == predicted) for true, predicted in found]
    accuracy, interval = mean_interval(right, tasks)
    report |= {
        "first_error_accuracy": accuracy,
        "interval": interval,
        "f1": process_bench_f1(found),
        "f1_interval": statistic_interval(
            lambda places: process_bench_f1([found[place] for place in places]), tasks
        ),
        "n": len(firsts),
        "tasks": task_count(tasks),
        "errors": sum(true is not None for true, _ in found),
        "threshold": threshold,
        "baselines": _baselines(firsts, known, right, tasks, _linear_firsts(firsts, known, linear or {})),
        "located": _located(firsts, known, linear or {}),
        "mistakes": worst_records(
            _wrong(scored, threshold, *each) for scored, each in zip(firsts, found, strict=True)
        ),
    }
    return report


def fits_threshold(validation: Sequence[FeedbackRecord]) -> bool:
    """Whether a threshold of first errors is fitted to the scores of these records."""
    return any(isinstance(record, StepLabelRecord) and record.has_first_error for record in validation)


def _wrong(scored: ScoredRecord, threshold: float, true: int | None, predicted: int | None) -> Wrong:
    """How far the score of the step that it calls wrong, or does not, is on the wrong side of the threshold."""
    scores = step_scores(scored.scores[0])
    if predicted == true:
        return 0.0, scored, true, predicted
    if predicted is not None and (true is None or predicted < true):
        return threshold - scores[predicted], scored, true, predicted
    assert true is not None
    missed = scores[true] - threshold
    return missed if np.isfinite(missed) else 0.0, scored, true, predicted


def _located(
    firsts: Sequence[ScoredRecord], known: Sequence[ScoredRecord], linear: LinearScores
) -> dict[str, Any] | None:
    wrong = [scored for scored in firsts if _true(scored) is not None]
    if not wrong:
        return None
    tasks = [scored.task for scored in wrong]
    right = [float(_weakest(scored) == _true(scored)) for scored in wrong]
    accuracy, interval = mean_interval(right, tasks)
    known = [scored for scored in known if _true(scored) is not None]
    scores = _scores_of(wrong, linear)
    weakest = None if scores is None else [steps.index(min(steps)) for steps in scores]
    baselines = _baselines(wrong, known, right, tasks, weakest)
    del baselines["no_error"]
    counts = {"n": len(wrong), "tasks": task_count(tasks)}
    return {"accuracy": accuracy, "interval": interval, **counts, "baselines": baselines}


def _scores_of(records: Sequence[ScoredRecord], linear: LinearScores) -> list[list[float]] | None:
    """By record and step; None where one is not known."""
    found = [linear.get(scored.record.trajectory.content_hash) for scored in records]
    return None if None in found else [step_scores(score) for score in found if score is not None]


def _linear_firsts(
    firsts: Sequence[ScoredRecord], known: Sequence[ScoredRecord], linear: LinearScores
) -> list[int | None] | None:
    """Its first errors, by the threshold that is best for it on `known`, as for the model."""
    scores = _scores_of(firsts, linear)
    if scores is None or _scores_of(known, linear) is None:
        return None
    own = [ScoredRecord(scored.record, (linear[scored.record.trajectory.content_hash],)) for scored in known]
    threshold = best_threshold(own)
    return [first_below(steps, threshold) for steps in scores]


def _weakest(scored: ScoredRecord) -> int:
    scores = step_scores(scored.scores[0])
    return scores.index(min(scores))


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
    true = [_true(scored) for scored in validation]
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


def _true(scored: ScoredRecord) -> int | None:
    first: int | None = scored.record.first_error
    return first


def _baselines(
    firsts: Sequence[ScoredRecord],
    known: Sequence[ScoredRecord],
    right: list[float],
    tasks: list[str],
    linear: Sequence[int | None] | None,
) -> dict[str, Any]:
    """Rules that look at no text: always the same place, or no error at all; and what a linear model says."""
    common = Counter(map(_true, known or firsts)).most_common(1)[0][0]
    rules: dict[str, list[int | None]] = {
        "no_error": [None] * len(firsts),
        "first_step": [0] * len(firsts),
        "last_step": [len(scored.record.trajectory.agent_steps) - 1 for scored in firsts],
        "most_common": [common] * len(firsts),
        **({} if linear is None else {"linear": [*linear]}),
    }
    out = {}
    for name, guesses in rules.items():
        rule = [float(guess == _true(scored)) for guess, scored in zip(guesses, firsts, strict=True)]
        difference, interval = difference_interval(right, rule, tasks)
        out[name] = {"accuracy": float(np.mean(rule)), "difference": difference, "interval": interval}
    return out


def _labels_report(labelled: Sequence[ScoredRecord]) -> dict[str, Any] | None:
    """How often a labelled step has the right label most probable, next to the most common label."""
    right, tasks, said = [], [], []
    for scored in labelled:
        score = scored.scores[0]
        if score.labels is None:
            return None
        known = known_labels(scored.record, len(scored.record.trajectory.agent_steps))
        for label, found in zip(known, score.labels, strict=True):
            if label is not None and found is not None:
                right.append(float(max(found, key=found.__getitem__) == label))
                tasks.append(scored.task)
                said.append(label)
    if not right:
        return None
    common = Counter(said).most_common(1)[0][0]
    accuracy, interval = mean_interval(right, tasks)
    rule = [float(label == common) for label in said]
    difference, between = difference_interval(right, rule, tasks)
    return {
        "accuracy": accuracy,
        "interval": interval,
        "n": len(right),
        "tasks": task_count(tasks),
        "baselines": {
            "majority": {"accuracy": float(np.mean(rule)), "difference": difference, "interval": between}
        },
    }
