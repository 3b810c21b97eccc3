"""Where a trajectory first goes wrong, and which steps are good."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from workers.evaluate.bootstrap import mean_interval, statistic_interval
from workers.evaluate.judged import Judged
from workers.evaluate.mistakes import Wrong, worst_judged
from workers.models import ModelScore
from workers.objectives.process import known_labels
from workers.schema import StepLabelRecord

Found = tuple[int | None, int | None]  # first error: true, predicted; None is "no error"


def steps_report(judged: Sequence[Judged], validation: Sequence[Judged]) -> dict[str, Any] | None:
    """{first_error_accuracy, interval, f1, f1_interval, n, errors, threshold, baselines, located, labels, mistakes};
    None without labels.

    A step is called an error where its score (P(good) with a label head, else the step reward) is below the threshold
    that is best on `validation`. f1: ProcessBench (arXiv 2412.06559), section 3.2. located: of the trajectories with an
    error, whether the step with the lowest score is the first one, as Who&When (arXiv 2505.00212) asks. mistakes: first
    errors not found, the surest first.
    """
    labelled = [one for one in judged if isinstance(one.record, StepLabelRecord)]
    if not labelled:
        return None
    firsts = [one for one in labelled if one.record.has_first_error]
    report: dict[str, Any] = {"labels": _labels_report(labelled)}
    if not firsts:
        return report
    known = [
        one for one in validation if isinstance(one.record, StepLabelRecord) and one.record.has_first_error
    ]
    threshold = best_threshold(known)
    found = [(_true(one), first_below(step_scores(one.scores[0]), threshold)) for one in firsts]
    tasks = [one.task for one in firsts]
    right = [float(true == predicted) for true, predicted in found]
    accuracy, interval = mean_interval(right, tasks)
    report |= {
        "first_error_accuracy": accuracy,
        "interval": interval,
        "f1": process_bench_f1(found),
        "f1_interval": statistic_interval(
            lambda places: process_bench_f1([found[one] for one in places]), tasks
        ),
        "n": len(firsts),
        "errors": sum(true is not None for true, _ in found),
        "threshold": threshold,
        "baselines": _baselines(firsts, known, right, tasks),
        "located": _located(firsts, known),
        "mistakes": worst_judged(
            _wrong(one, threshold, *each) for one, each in zip(firsts, found, strict=True)
        ),
    }
    return report


def _wrong(one: Judged, threshold: float, true: int | None, predicted: int | None) -> Wrong:
    """How far the score of the step that it calls wrong, or does not, is on the wrong side of the threshold."""
    scores = step_scores(one.scores[0])
    if predicted == true:
        return 0.0, one, true, predicted
    if predicted is not None and (true is None or predicted < true):
        return threshold - scores[predicted], one, true, predicted
    assert true is not None
    missed = scores[true] - threshold
    return missed if np.isfinite(missed) else 0.0, one, true, predicted


def _located(firsts: Sequence[Judged], known: Sequence[Judged]) -> dict[str, Any] | None:
    wrong = [one for one in firsts if _true(one) is not None]
    if not wrong:
        return None
    tasks = [one.task for one in wrong]
    right = [float(_weakest(one) == _true(one)) for one in wrong]
    accuracy, interval = mean_interval(right, tasks)
    baselines = _baselines(wrong, [one for one in known if _true(one) is not None], right, tasks)
    del baselines["no_error"]
    return {"accuracy": accuracy, "interval": interval, "n": len(wrong), "baselines": baselines}


def _weakest(one: Judged) -> int:
    scores = step_scores(one.scores[0])
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
        return [float("inf") if step in dropped else one for step, one in enumerate(score.step_rewards)]
    return [float("inf") if one is None else one["good"] for one in score.labels]


def first_below(scores: Sequence[float], threshold: float) -> int | None:
    return next((step for step, score in enumerate(scores) if score < threshold), None)


def best_threshold(validation: Sequence[Judged]) -> float:
    """With the highest F1 (accuracy, where one side is missing); one half for probabilities, 0 for rewards without."""
    if not validation:
        return 0.5
    scores = [step_scores(one.scores[0]) for one in validation]
    true = [_true(one) for one in validation]
    is_labels = validation[0].scores[0].labels is not None
    every = sorted({score for one in scores for score in one if np.isfinite(score)})
    if not every:
        return 0.5 if is_labels else 0.0
    middles = [
        every[0] - 1e-6,
        *((a + b) / 2 for a, b in pairwise(every)),
        every[-1] + 1e-6,
    ]
    candidates = middles[:: max(1, len(middles) // 400)]

    def quality(threshold: float) -> float:
        found = [(t, first_below(one, threshold)) for t, one in zip(true, scores, strict=True)]
        f1 = process_bench_f1(found)
        return float(np.mean([t == p for t, p in found])) if f1 is None else f1

    return float(max(candidates, key=quality))


def _true(one: Judged) -> int | None:
    first: int | None = one.record.first_error
    return first


def _baselines(
    firsts: Sequence[Judged], known: Sequence[Judged], right: list[float], tasks: list[str]
) -> dict[str, Any]:
    """Rules that look at no text: always the same place, or no error at all."""
    common = Counter(map(_true, known or firsts)).most_common(1)[0][0]
    rules: dict[str, list[int | None]] = {
        "no_error": [None] * len(firsts),
        "first_step": [0] * len(firsts),
        "last_step": [len(one.record.trajectory.agent_steps) - 1 for one in firsts],
        "most_common": [common] * len(firsts),
    }
    out = {}
    for name, guesses in rules.items():
        rule = [float(guess == _true(one)) for guess, one in zip(guesses, firsts, strict=True)]
        difference, interval = mean_interval([a - b for a, b in zip(right, rule, strict=True)], tasks)
        out[name] = {"accuracy": float(np.mean(rule)), "difference": difference, "interval": interval}
    return out


def _labels_report(labelled: Sequence[Judged]) -> dict[str, Any] | None:
    """How often a labelled step has the right label most probable, beside the most common label."""
    right, tasks, said = [], [], []
    for one in labelled:
        score = one.scores[0]
        if score.labels is None:
            return None
        known = known_labels(one.record, len(one.record.trajectory.agent_steps))
        for label, found in zip(known, score.labels, strict=True):
            if label is not None and found is not None:
                right.append(float(max(found, key=found.__getitem__) == label))
                tasks.append(one.task)
                said.append(label)
    if not right:
        return None
    common = Counter(said).most_common(1)[0][0]
    accuracy, interval = mean_interval(right, tasks)
    rule = [float(label == common) for label in said]
    difference, between = mean_interval([a - b for a, b in zip(right, rule, strict=True)], tasks)
    return {
        "accuracy": accuracy,
        "interval": interval,
        "n": len(right),
        "baselines": {
            "majority": {"accuracy": float(np.mean(rule)), "difference": difference, "interval": between}
        },
    }
