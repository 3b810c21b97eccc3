"""How well a model orders trajectories as ratings and rubric scores do."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from workers.evaluate.bootstrap import statistic_interval
from workers.evaluate.judged import Judged, own_length
from workers.evaluate.ranks import Numbers, spearman
from workers.objectives.regression import place_on_scale
from workers.schema import RatingRecord, ScoreRecord

OVERALL = "rating"


def scores_report(judged: Sequence[Judged]) -> dict[str, Any] | None:
    """{spearman, interval, n, baselines, criteria: {name: {spearman, interval, n}}}; None without scores.

    Spearman's correlation, over the means of what was said of a trajectory by a criterion. spearman: the mean over
    criteria; a criterion the model has a score for is measured by that score, any other by the reward.
    """
    groups = _means(judged)
    by_name = {name: one for name, rows in groups.items() if (one := _one(name, rows)) is not None}
    if not by_name:
        return None
    baselines = {}
    for rule, sign in (("longer", 1.0), ("shorter", -1.0)):
        known = [spearman(sign * _lengths(groups[name]), _said(groups[name])) for name in by_name]
        baselines[rule] = {"spearman": float(np.mean([one for one in known if one is not None] or [0.0]))}
    mean = float(np.mean([one["spearman"] for one in by_name.values()]))
    rows = [(name, row) for name in by_name for row in groups[name]]

    def whole(places: Any) -> float | None:
        chosen: dict[str, list[_Row]] = {}
        for place in places:
            name, row = rows[place]
            chosen.setdefault(name, []).append(row)
        found = [spearman(_given(name, some), _said(some)) for name, some in chosen.items()]
        known = [one for one in found if one is not None]
        return float(np.mean(known)) if known else None

    return {
        "spearman": mean,
        "interval": statistic_interval(whole, [row[0].task for _, row in rows], draws=300),
        "n": sum(one["n"] for one in by_name.values()),
        "baselines": {name: one | {"difference": mean - one["spearman"]} for name, one in baselines.items()},
        "criteria": by_name,
    }


_Row = tuple[Judged, float]  # one record of a trajectory, and the mean of what was said


def _means(judged: Sequence[Judged]) -> dict[str, list[_Row]]:
    found: dict[str, dict[str, tuple[Judged, list[float]]]] = {}
    for one in judged:
        if isinstance(one.record, RatingRecord | ScoreRecord):
            name = one.record.criterion if isinstance(one.record, ScoreRecord) else OVERALL
            key = one.record.trajectory.content_hash
            found.setdefault(name, {}).setdefault(key, (one, []))[1].append(place_on_scale(one.record))
    return {
        name: [(one, float(np.mean(values))) for one, values in rows.values()] for name, rows in found.items()
    }


def _one(name: str, rows: list[_Row]) -> dict[str, Any] | None:
    given, said = _given(name, rows), _said(rows)
    value = spearman(given, said)
    if value is None:
        return None
    interval = statistic_interval(
        lambda places: spearman(given[places], said[places]), [one.task for one, _ in rows], draws=300
    )
    return {"spearman": value, "interval": interval, "n": len(rows)}


def _given(name: str, rows: Sequence[_Row]) -> Numbers:
    return np.array([one.scores[0].criteria.get(name, one.scores[0].raw) for one, _ in rows])


def _said(rows: Sequence[_Row]) -> Numbers:
    return np.array([value for _, value in rows])


def _lengths(rows: Sequence[_Row]) -> Numbers:
    return np.array([own_length(one.record.trajectory) for one, _ in rows], dtype=float)
