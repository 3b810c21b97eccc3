"""Where a trajectory first goes wrong, and which steps are good."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workers.evaluate.bootstrap import difference_interval, mean_interval, statistic_interval, task_count
from workers.evaluate.first_errors import (
    best_threshold,
    first_below,
    process_bench_f1,
    step_scores,
    true_first_error,
)
from workers.evaluate.learned_baselines import LearnedBaselines
from workers.evaluate.mistakes import Wrong, worst_records
from workers.evaluate.predictions import ScoredRecord
from workers.evaluate.step_baselines import (
    first_error_guesses,
    known_steps,
    label_guesses,
    located_guesses,
    most_probable,
    with_first_error,
)
from workers.schema import FeedbackRecord, StepLabelRecord


def steps_report(
    scored_records: Sequence[ScoredRecord],
    validation: Sequence[ScoredRecord],
    learned: LearnedBaselines | None = None,
) -> dict[str, Any] | None:
    """{first_error_accuracy, interval, f1, f1_interval, n, errors, threshold, baselines, best_baseline, located,
    labels, mistakes}; None without labels.

    A step is called an error where its score (P(good) with a label head, else the step reward) is below the threshold
    that is best on `validation`. f1: ProcessBench (arXiv 2412.06559), section 3.2. located: of the trajectories with an
    error, whether the step with the lowest score is the first one, as Who&When (arXiv 2505.00212) asks. mistakes: first
    errors not found, the surest first. learned: more baselines, each where it has all of them.
    """
    learned = learned or LearnedBaselines()
    labelled = [scored for scored in scored_records if isinstance(scored.record, StepLabelRecord)]
    if not labelled:
        return None
    firsts = with_first_error(labelled)
    report: dict[str, Any] = {"labels": _labels_report(labelled, learned)}
    if not firsts:
        return report
    known = with_first_error(validation)
    threshold = best_threshold(known)
    found = [
        (true_first_error(scored), first_below(step_scores(scored.scores[0]), threshold)) for scored in firsts
    ]
    tasks = [scored.task for scored in firsts]
    right = [float(true == predicted) for true, predicted in found]
    accuracy, interval = mean_interval(right, tasks)
    baselines = _baselines(firsts, first_error_guesses(firsts, known, learned), right, tasks)
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
        "baselines": baselines,
        "best_baseline": learned.best_of("steps", baselines),
        "located": _located(firsts, known, learned),
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
    firsts: Sequence[ScoredRecord], known: Sequence[ScoredRecord], learned: LearnedBaselines
) -> dict[str, Any] | None:
    wrong = [scored for scored in firsts if true_first_error(scored) is not None]
    if not wrong:
        return None
    tasks = [scored.task for scored in wrong]
    right = [float(_weakest(scored) == true_first_error(scored)) for scored in wrong]
    accuracy, interval = mean_interval(right, tasks)
    known = [scored for scored in known if true_first_error(scored) is not None]
    baselines = _baselines(wrong, located_guesses(wrong, known, learned), right, tasks)
    return {
        "accuracy": accuracy,
        "interval": interval,
        "n": len(wrong),
        "tasks": task_count(tasks),
        "baselines": baselines,
        "best_baseline": learned.best_of("located", baselines),
    }


def _weakest(scored: ScoredRecord) -> int:
    scores = step_scores(scored.scores[0])
    return scores.index(min(scores))


def _baselines(
    firsts: Sequence[ScoredRecord],
    guesses: Mapping[str, Sequence[int | None]],
    right: list[float],
    tasks: list[str],
) -> dict[str, Any]:
    return {
        name: _difference(
            [guess == true_first_error(scored) for guess, scored in zip(found, firsts, strict=True)],
            right,
            tasks,
        )
        for name, found in guesses.items()
    }


def _difference(rule: Sequence[bool], right: list[float], tasks: list[str]) -> dict[str, Any]:
    values = [float(value) for value in rule]
    difference, interval = difference_interval(right, values, tasks)
    return {"accuracy": float(np.mean(values)), "difference": difference, "interval": interval}


def _labels_report(labelled: Sequence[ScoredRecord], learned: LearnedBaselines) -> dict[str, Any] | None:
    """How often a labelled step has the right label most probable, next to the baselines'."""
    if any(scored.scores[0].labels is None for scored in labelled):
        return None
    read = [(scored, step, label) for scored in labelled for step, label in known_steps(scored)]
    if not read:
        return None
    right = [float(most_probable(scored.scores[0], step) == label) for scored, step, label in read]
    tasks = [scored.task for scored, _, _ in read]
    accuracy, interval = mean_interval(right, tasks)
    baselines = {
        name: _difference(
            [guess == label for guess, (*_, label) in zip(found, read, strict=True)], right, tasks
        )
        for name, found in label_guesses(labelled, learned).items()
    }
    return {
        "accuracy": accuracy,
        "interval": interval,
        "n": len(right),
        "tasks": task_count(tasks),
        "baselines": baselines,
        "best_baseline": learned.best_of("labels", baselines),
    }
