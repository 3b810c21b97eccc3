"""report.json: how good a model is, on data it has not seen."""

import time
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from workers.evaluate.annotators import leave_one_out
from workers.evaluate.findings import findings
from workers.evaluate.judged import Judge, Judged, judge, own_length
from workers.evaluate.mistakes import worst_mistakes
from workers.evaluate.outcome import outcome_report
from workers.evaluate.preference import Prediction, predictions, preference_report
from workers.evaluate.ranks import spearman
from workers.evaluate.scores import scores_report
from workers.evaluate.steps import steps_report
from workers.models import LocalScorer, ModelScore
from workers.schema import FeedbackRecord, PreferenceRecord, Trajectory
from workers.schema.records import record_trajectories


def evaluate(
    judge: Judge, test: Sequence[FeedbackRecord], *, validation: Sequence[FeedbackRecord] = ()
) -> dict[str, Any]:
    """The report on `test`; temperature and thresholds are fitted on `validation`. What does not apply is null."""
    started = time.monotonic()
    report = report_of(judge(test), judge(validation), criteria=judge.model.compared_by)
    return report | {"seconds": time.monotonic() - started}


def report_of(
    judged: Sequence[Judged], validation: Sequence[Judged], *, criteria: Collection[str | None]
) -> dict[str, Any]:
    """The same, of what was scored before."""
    found = predictions(judged, criteria)
    measured = preference_report(found, predictions(validation, criteria))
    report = {
        "annotators": leave_one_out(
            [one.record for one in judged if isinstance(one.record, PreferenceRecord)]
        ),
        "preference": measured and measured["preference"],
        "calibration": measured and measured["calibration"],
        "outcome": outcome_report(judged),
        "steps": steps_report(judged, validation),
        "scores": scores_report(judged),
        "length_correlation": length_correlation(judged),
        "truncated": _truncated(judged),
        "mistakes": worst_mistakes(found),
    }
    return report | {"findings": findings(report)}


def predict(model: LocalScorer, records: Sequence[FeedbackRecord], *, cache: Any = None) -> list[Prediction]:
    """What the model gives both sides of every usable comparison by its criterion, in the order of the records."""
    wanted = [record for record in records if isinstance(record, PreferenceRecord)]
    return predictions(judge(model, wanted, cache=cache), model.compared_by)


def length_correlation(judged: Sequence[Judged]) -> float | None:
    """Spearman's, of reward with length, over distinct trajectories; None where either does not vary."""
    seen = _trajectories(judged)
    if len(seen) < 2:
        return None
    rewards = np.array([score.raw for _, score in seen])
    return spearman(rewards, np.array([own_length(side) for side, _ in seen], dtype=float))


def _truncated(judged: Sequence[Judged]) -> dict[str, int]:
    """How many of the scored trajectories did not fit: {n, of}."""
    seen = _trajectories(judged)
    return {"n": sum(score.truncated for _, score in seen), "of": len(seen)}


def _trajectories(judged: Sequence[Judged]) -> list[tuple[Trajectory, ModelScore]]:
    """Each once, with what it was given last."""
    return list(
        {
            side.content_hash: (side, score)
            for one in judged
            for side, score in zip(record_trajectories(one.record), one.scores, strict=True)
        }.values()
    )
