"""How well a model orders trajectories as ratings and rubric scores do."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from workers.evaluate.bootstrap import task_count, weighted_interval
from workers.evaluate.learned_baselines import LinearScores
from workers.evaluate.mistakes import worst_records
from workers.evaluate.predictions import ScoredRecord, agent_text_length
from workers.evaluate.ranks import Numbers, ranks, spearman, spearman_draws
from workers.objectives.regression import place_on_scale
from workers.schema import RatingRecord, ScoreRecord

OVERALL = "rating"
_DRAWS = 300
_SHOWN = 3  # by a criterion


def scores_report(
    scored_records: Sequence[ScoredRecord], linear: LinearScores | None = None
) -> dict[str, Any] | None:
    """{spearman, interval, n, by_judges, baselines, criteria: {name: {spearman, interval, n, mistakes}}}; None without
    scores.

    Spearman's correlation, over the mean score of each trajectory by a criterion. spearman: the mean over
    criteria; a criterion the model has a score for is measured by that score, any other by the reward. Where people and
    judges scored a trajectory by a criterion, only people count; by_judges: of n, those that only judges scored.
    linear: one more baseline, where it has all of them. mistakes: those whose two places among the others are farthest
    apart.
    """
    groups = {name: rows for name, rows in _rows_by_criterion(scored_records).items() if _varies(name, rows)}
    if not groups:
        return None
    rows = [row for some in groups.values() for row in some]
    annotated, tasks = _mean_scores(rows), [row.task for row, _ in rows]
    predicted = np.concatenate([_predicted_scores(name, some) for name, some in groups.items()])
    lengths = np.array([agent_text_length(row.record.trajectory) for row, _ in rows], dtype=float)
    criterion = np.repeat(np.arange(len(groups)), [len(some) for some in groups.values()])

    def over_criteria(value: Numbers, weights: Numbers) -> Numbers:
        """[draws]: the mean over the criteria whose scores vary in a draw."""
        found = np.stack(
            [
                spearman_draws(value[places], annotated[places], weights[:, places])
                for places in (criterion == group for group in range(len(groups)))
            ]
        )
        known = ~np.isnan(found)
        total = np.where(known, found, 0.0).sum(0)
        return np.where(known.any(0), total, np.nan) / np.maximum(known.sum(0), 1)

    def gain(rule: Numbers, weights: Numbers) -> Numbers:
        return over_criteria(predicted, weights) - over_criteria(rule, weights)

    whole = np.ones((1, len(rows)))
    baselines = {}
    rules = {"longer": lengths, "shorter": -lengths}
    by_linear = [_linear_score(name, row, linear or {}) for name, some in groups.items() for row, _ in some]
    if None not in by_linear:
        rules["linear"] = np.array(by_linear, dtype=float)
    for name, rule in rules.items():
        baselines[name] = {
            "spearman": _only(over_criteria(rule, whole)) or 0.0,
            "difference": _only(gain(rule, whole)),
            "interval": weighted_interval(partial(gain, rule), tasks, draws=_DRAWS),
        }
    return {
        "spearman": _only(over_criteria(predicted, whole)),
        "interval": weighted_interval(partial(over_criteria, predicted), tasks, draws=_DRAWS),
        "n": len(rows),
        "tasks": task_count(tasks),
        "by_judges": sum(row.record.origin == "judge" for row, _ in rows),
        "baselines": baselines,
        "criteria": {name: _report_criterion(name, some) for name, some in groups.items()},
    }


_Row = tuple[ScoredRecord, float]  # one record of a trajectory, and the mean of its scores


def _only(values: Numbers) -> float | None:
    """Of one draw."""
    (value,) = values.tolist()
    return None if math.isnan(value) else float(value)


def _rows_by_criterion(scored_records: Sequence[ScoredRecord]) -> dict[str, list[_Row]]:
    found: dict[str, dict[str, tuple[ScoredRecord, list[float]]]] = {}
    for scored in sorted(
        scored_records, key=lambda scored: getattr(scored.record, "origin", "") == "judge"
    ):  # people first
        if isinstance(scored.record, RatingRecord | ScoreRecord):
            name = scored.record.criterion if isinstance(scored.record, ScoreRecord) else OVERALL
            key = scored.record.trajectory.content_hash
            first, values = found.setdefault(name, {}).setdefault(key, (scored, []))
            if first.record.origin == "judge" or scored.record.origin != "judge":
                values.append(place_on_scale(scored.record))
    return {
        name: [(row, float(np.mean(values))) for row, values in rows.values()] for name, rows in found.items()
    }


def _varies(name: str, rows: list[_Row]) -> bool:
    return spearman(_predicted_scores(name, rows), _mean_scores(rows)) is not None


def _report_criterion(name: str, rows: list[_Row]) -> dict[str, Any]:
    predicted, annotated = _predicted_scores(name, rows), _mean_scores(rows)
    interval = weighted_interval(
        partial(spearman_draws, predicted, annotated), [row.task for row, _ in rows], draws=_DRAWS
    )
    apart = np.abs(ranks(predicted) - ranks(annotated)) / len(rows)
    wrong = [
        (float(far), row, _on_scale(row, value), float(score))
        for far, (row, value), score in zip(apart, rows, predicted, strict=True)
    ]
    return {
        "spearman": spearman(predicted, annotated),
        "interval": interval,
        "n": len(rows),
        "mistakes": worst_records(wrong, about=name, most=_SHOWN),
    }


def _on_scale(scored: ScoredRecord, place: float) -> float:
    """The mean score, on the scale of the record."""
    low, high = scored.record.scale or (0.0, 1.0)
    return float(low + (high - low) * place)


def _predicted_scores(name: str, rows: Sequence[_Row]) -> Numbers:
    return np.array([row.scores[0].criteria.get(name, row.scores[0].raw) for row, _ in rows])


def _linear_score(name: str, row: ScoredRecord, linear: LinearScores) -> float | None:
    score = linear.get(row.record.trajectory.content_hash)
    return None if score is None else score.criteria.get(name, score.raw)


def _mean_scores(rows: Sequence[_Row]) -> Numbers:
    return np.array([value for _, value in rows])
