"""Converts feedback on trajectories of one task into pairwise comparisons."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from workers.schema.records import (
    FeedbackRecord,
    OutcomeRecord,
    PreferenceRecord,
    RankingRecord,
    RatingRecord,
    ScoreRecord,
    Trajectory,
)

_PREFERRED = {"a": 1.0, "b": 0.0, "tie": 0.5, "both_bad": 0.5}


@dataclass(frozen=True, slots=True)
class Comparison:
    """a, b: ids of trajectories, or their content hashes where they have none.

    preferred: 1 where `a` is the better one, 0 where `b` is, 0.5 where neither.
    """

    task: str
    a: str
    b: str
    preferred: float
    weight: float = 1.0


def comparisons(records: Iterable[FeedbackRecord]) -> Iterator[Comparison]:
    """Preferences (overall ones, or by criteria where nothing else was asked), the pairs of rankings, and every two
    runs of a task that one annotator rated or scored by one criterion, or whose outcomes are known.

    Equal ratings or outcomes give no comparison: a scale is too coarse to call that a tie.
    """
    rated: dict[tuple[Any, ...], dict[str, float]] = {}
    for record in records:
        if isinstance(record, PreferenceRecord):
            a, b = record.a, record.b
            yield Comparison(a.task.id, _name(a), _name(b), _PREFERRED[record.choice], record.weight)
        elif isinstance(record, RankingRecord):
            yield from _ranked(record)
        elif isinstance(record, RatingRecord | ScoreRecord | OutcomeRecord):
            trajectory, value = record.trajectory, _value(record)
            who = "" if isinstance(record, OutcomeRecord) else record.annotator
            about = (type(record), trajectory.task.id, who, getattr(record, "criterion", None))
            rated.setdefault(about, {})[_name(trajectory)] = value
    for (_, task, *_rest), values in rated.items():
        for (one_name, one_value), (other, other_value) in combinations(values.items(), 2):
            if one_value != other_value:
                yield Comparison(task, one_name, other, float(one_value > other_value))


def _ranked(record: RankingRecord) -> Iterator[Comparison]:
    places = list(zip(record.trajectories, record.ranks, strict=True))
    for (a, first), (b, second) in combinations(places, 2):
        preferred = 0.5 if first == second else float(first < second)
        yield Comparison(a.task.id, _name(a), _name(b), preferred, record.weight)


def _name(trajectory: Trajectory) -> str:
    return trajectory.content_hash if trajectory.id is None else trajectory.id


def _value(record: RatingRecord | ScoreRecord | OutcomeRecord) -> float:
    if isinstance(record, OutcomeRecord):
        return float(record.success) if record.reward is None else record.reward
    if isinstance(record, ScoreRecord):
        return record.value
    return float(record.accept) if record.rating is None else record.rating  # type: ignore[arg-type]
