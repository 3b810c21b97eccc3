"""How well rewards decide what people accept and reject: F1, as Proactive Agent reports it (arXiv 2410.12361)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.evaluate.bootstrap import interval, task_count, task_draws
from workers.evaluate.learned_baselines import LearnedBaselines
from workers.evaluate.predictions import ScoredRecord
from workers.evaluate.ranks import Numbers
from workers.objectives.length_effect import agent_text_length
from workers.schema import RatingRecord

_Decisions = NDArray[np.bool_]


def acceptance_report(
    scored_records: Sequence[ScoredRecord],
    validation: Sequence[ScoredRecord],
    learned: LearnedBaselines | None = None,
) -> dict[str, Any] | None:
    """{f1, interval, precision, recall, accuracy, threshold, n, tasks, accepted, baselines}; None without ratings that
    accept and ratings that reject, here and in `validation`.

    A trajectory is accepted from the threshold on, which is the one with the highest F1 on `validation`. Every baseline
    has such a threshold too; `accept_all` accepts everything. f1: of accepting, 2 TP / (2 TP + FP + FN).
    """
    learned = learned or LearnedBaselines()
    test, fitted = _accept_ratings(scored_records), _accept_ratings(validation)
    accepted, accepted_before = _decisions(test), _decisions(fitted)
    if not all(_has_both(decisions) for decisions in (accepted, accepted_before)):
        return None
    tasks = [scored.task for scored in test]
    drawn, distinct = task_draws(tasks), task_count(tasks)
    whole = np.ones((1, len(test)))
    threshold = f1_threshold(_rewards(fitted), accepted_before)
    ours = _rewards(test) >= threshold
    own, own_drawn = float(f1_score(ours, accepted, whole)[0]), f1_score(ours, accepted, drawn)
    baselines = {}
    for name, decided in _baselines(test, fitted, accepted_before, learned).items():
        value = float(f1_score(decided, accepted, whole)[0])
        baselines[name] = {
            "f1": value,
            "difference": own - value,
            "interval": interval(own_drawn - f1_score(decided, accepted, drawn), distinct),
        }
    return {
        "f1": own,
        "interval": interval(own_drawn, distinct),
        "precision": float(accepted[ours].mean()) if ours.any() else None,
        "recall": float(ours[accepted].mean()),
        "accuracy": float((ours == accepted).mean()),
        "threshold": threshold,
        "n": len(test),
        "tasks": distinct,
        "accepted": int(accepted.sum()),
        "baselines": baselines,
    }


def f1_score(decided: _Decisions, accepted: _Decisions, weights: Numbers) -> Numbers:
    """[draws]; NaN where nothing is accepted in a draw. decided, accepted: [n]. weights: [draws, n]."""
    both, either = weights @ (decided & accepted), weights @ (decided.astype(float) + accepted)
    return np.where(weights @ accepted > 0, 2 * both / np.maximum(either, 1e-12), np.nan)


def f1_threshold(values: Numbers, accepted: _Decisions) -> float:
    """The lowest accepted value of the rule `value >= threshold` with the highest F1. values, accepted: [n]."""
    order = np.argsort(-values, kind="stable")
    hits = np.cumsum(accepted[order])
    scores = 2 * hits / (np.arange(1, len(values) + 1) + accepted.sum())
    is_last_of_equal = np.append(np.diff(values[order]) != 0, True)
    return float(values[order][int(np.where(is_last_of_equal, scores, -1.0).argmax())])


def _accept_ratings(scored_records: Sequence[ScoredRecord]) -> list[ScoredRecord]:
    return [
        scored
        for scored in scored_records
        if isinstance(scored.record, RatingRecord) and scored.record.accept is not None
    ]


def _decisions(found: Sequence[ScoredRecord]) -> _Decisions:
    return np.array([scored.record.accept for scored in found], dtype=bool)


def _has_both(decisions: _Decisions) -> bool:
    return bool(decisions.any() and not decisions.all())


def _rewards(found: Sequence[ScoredRecord]) -> Numbers:
    return np.array([scored.scores[0].raw for scored in found], dtype=float)


def _baselines(
    test: Sequence[ScoredRecord],
    fitted: Sequence[ScoredRecord],
    accepted_before: _Decisions,
    learned: LearnedBaselines,
) -> dict[str, _Decisions]:
    """By name, what each accepts of `test`."""
    before, now = _lengths(fitted), _lengths(test)
    values = {"longer": (before, now), "shorter": (-before, -now)}
    known = learned.scores_of_all("scores", [scored.record for scored in (*fitted, *test)])
    values |= {name: (_scored_by(scores, fitted), _scored_by(scores, test)) for name, scores in known.items()}
    return {
        "accept_all": np.ones(len(test), dtype=bool),
        **{name: now >= f1_threshold(before, accepted_before) for name, (before, now) in values.items()},
    }


def _lengths(found: Sequence[ScoredRecord]) -> Numbers:
    return np.array([agent_text_length(scored.record.trajectory) for scored in found], dtype=float)


def _scored_by(scores: Mapping[str, Any], found: Sequence[ScoredRecord]) -> Numbers:
    return np.array([scores[scored.record.trajectory.content_hash].raw for scored in found], dtype=float)
