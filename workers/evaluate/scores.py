"""How well a model orders trajectories as ratings and rubric scores do."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.evaluate.bootstrap import task_count, weighted_interval
from workers.evaluate.learned_baselines import LearnedBaselines, ModelScores
from workers.evaluate.mistakes import worst_records
from workers.evaluate.predictions import ScoredRecord
from workers.evaluate.ranks import Numbers, ranks, spearman, spearman_draws
from workers.objectives.length_effect import agent_text_length
from workers.objectives.regression import place_on_scale
from workers.schema import RatingRecord, ScoreRecord

OVERALL = "rating"
_DRAWS = 300
_SHOWN = 3  # by a criterion
_LEAST_LEFT = 1e-9  # of the variance, when length is known


def scores_report(
    scored_records: Sequence[ScoredRecord], learned: LearnedBaselines | None = None
) -> dict[str, Any] | None:
    """{spearman, interval, n, by_judges, length_controlled, baselines, best_baseline, criteria: {name: {spearman,
    interval, n, mistakes}}}; None without scores.

    Spearman's correlation, over the mean score of each trajectory by a criterion. spearman: the mean over
    criteria; a criterion the model has a score for is measured by that score, any other by the reward. Where people and
    judges scored a trajectory by a criterion, only people count; by_judges: of n, those that only judges scored.
    learned: more baselines, each where it has all of them. length_controlled: {spearman, interval} of what length does
    not tell: the partial rank correlation given the length of the agent's text. mistakes: those whose two places among
    the others are farthest apart.
    """
    learned = learned or LearnedBaselines()
    groups = _varying_groups(scored_records)
    if not groups.rows:
        return None
    tasks = [row.task for row, _ in groups.rows]
    predicted = np.concatenate([_predicted_scores(name, some) for name, some in groups.by_criterion.items()])
    lengths = groups.lengths
    correlation = partial(groups.correlation, predicted)

    def gain(rule: Numbers, weights: Numbers) -> Numbers:
        return correlation(weights) - groups.correlation(rule, weights)

    whole = np.ones((1, len(groups.rows)))
    baselines = {}
    for name, rule in _rules(groups, learned).items():
        baselines[name] = {
            "spearman": _only(groups.correlation(rule, whole)) or 0.0,
            "difference": _only(gain(rule, whole)),
            "interval": weighted_interval(partial(gain, rule), tasks, draws=_DRAWS),
        }
    by_content = partial(groups.partial_correlation, predicted, lengths)
    return {
        "spearman": _only(correlation(whole)),
        "interval": weighted_interval(correlation, tasks, draws=_DRAWS),
        "n": len(groups.rows),
        "tasks": task_count(tasks),
        "by_judges": sum(row.record.origin == "judge" for row, _ in groups.rows),
        "length_controlled": {
            "spearman": _only(by_content(whole)),
            "interval": weighted_interval(by_content, tasks, draws=_DRAWS),
        },
        "baselines": baselines,
        "best_baseline": learned.best_of("scores", baselines),
        "criteria": {name: _report_criterion(name, some) for name, some in groups.by_criterion.items()},
    }


def score_baselines(scored_records: Sequence[ScoredRecord], learned: LearnedBaselines) -> dict[str, float]:
    """By name, the mean rank correlation of each baseline over the criteria; none without scores that vary."""
    groups = _Groups(
        {
            name: rows
            for name, rows in _rows_by_criterion(scored_records).items()
            if len(rows) > 1 and np.ptp(_mean_scores(rows)) > 0
        }
    )
    if not groups.rows:
        return {}
    whole = np.ones((1, len(groups.rows)))
    rules = _rules(groups, learned)
    return {name: _only(groups.correlation(rule, whole)) or 0.0 for name, rule in rules.items()}


_Row = tuple[ScoredRecord, float]  # one record of a trajectory, and the mean of its scores


@dataclass(frozen=True)
class _Groups:
    """Scored trajectories by criterion; a value of each of `rows` is [rows], weights of draws are [draws, rows]."""

    by_criterion: dict[str, list[_Row]]

    @cached_property
    def rows(self) -> list[_Row]:
        return [row for some in self.by_criterion.values() for row in some]

    @cached_property
    def annotated(self) -> Numbers:
        return _mean_scores(self.rows)

    @cached_property
    def lengths(self) -> Numbers:
        return np.array([agent_text_length(row.record.trajectory) for row, _ in self.rows], dtype=float)

    def correlation(self, value: Numbers, weights: Numbers) -> Numbers:
        """[draws]: the mean over the criteria whose scores vary in a draw."""
        return self._mean_over_criteria(
            lambda places: spearman_draws(value[places], self.annotated[places], weights[:, places])
        )

    def partial_correlation(self, value: Numbers, other: Numbers, weights: Numbers) -> Numbers:
        """[draws]: the same, of what is left of both when `other` is known (partial rank correlation)."""

        def by_criterion(places: NDArray[np.bool_]) -> Numbers:
            a, b, c = (numbers[places] for numbers in (value, self.annotated, other))
            drawn = weights[:, places]
            ab, ac, bc = (spearman_draws(*pair, drawn) for pair in ((a, b), (a, c), (b, c)))
            left = (1 - ac**2) * (1 - bc**2)
            partial_value = (ab - ac * bc) / np.sqrt(np.where(left > _LEAST_LEFT, left, np.nan))
            return np.where(
                np.isnan(ac), ab, partial_value
            )  # a length that is the same for all tells nothing

        return self._mean_over_criteria(by_criterion)

    def _mean_over_criteria(self, of_places: Callable[[NDArray[np.bool_]], Numbers]) -> Numbers:
        criterion = np.repeat(
            np.arange(len(self.by_criterion)), [len(some) for some in self.by_criterion.values()]
        )
        found = np.stack([of_places(criterion == group) for group in range(len(self.by_criterion))])
        known = ~np.isnan(found)
        total = np.where(known, found, 0.0).sum(0)
        return np.where(known.any(0), total, np.nan) / np.maximum(known.sum(0), 1)


def _varying_groups(scored_records: Sequence[ScoredRecord]) -> _Groups:
    return _Groups(
        {name: rows for name, rows in _rows_by_criterion(scored_records).items() if _varies(name, rows)}
    )


def _rules(groups: _Groups, learned: LearnedBaselines) -> dict[str, Numbers]:
    known = learned.scores_of_all("scores", (row.record for row, _ in groups.rows))
    return {
        "longer": groups.lengths,
        "shorter": -groups.lengths,
        **{
            name: np.array(
                [
                    _score_by(criterion, row, scores)
                    for criterion, some in groups.by_criterion.items()
                    for row, _ in some
                ]
            )
            for name, scores in known.items()
        },
    }


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


def _score_by(name: str, row: ScoredRecord, scores: ModelScores) -> float:
    score = scores[row.record.trajectory.content_hash]
    return score.criteria.get(name, score.raw)


def _mean_scores(rows: Sequence[_Row]) -> Numbers:
    return np.array([value for _, value in rows])
