"""Baselines that were fitted to the model's training data, next to rules that look at no text."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from workers.evaluate.ngram_baseline import NgramRewards
from workers.models import ModelScore
from workers.schema import (
    OutcomeRecord,
    PreferenceRecord,
    RankingRecord,
    RatingRecord,
    ScoreRecord,
    StepLabelRecord,
)
from workers.schema.records import record_trajectories

ModelScores: TypeAlias = Mapping[str, ModelScore]  # by content hash
Part = Literal["preference", "outcome", "scores", "steps"]
PARTS: dict[Part, tuple[type, ...]] = {
    "preference": (PreferenceRecord, RankingRecord),
    "outcome": (OutcomeRecord,),
    "scores": (RatingRecord, ScoreRecord),
    "steps": (StepLabelRecord,),
}
"""Of a report, with the records that each is about."""


@dataclass(frozen=True, slots=True)
class BaselineScores:
    """held_out: of the trajectories that the report is on. training: of those that the baseline learnt from, by fits
    that had not seen their task; both empty where it cannot learn from the records. folds: by task, which of these fits
    its training scores are by."""

    held_out: ModelScores = field(default_factory=dict)
    training: ModelScores = field(default_factory=dict)
    folds: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LearnedBaselines:
    """ngrams: of comparisons. models: by name, such as `linear`, of all kinds of feedback. neighbours: by the part of
    the report whose feedback they average. best: by part, the best of all baselines, as `best_baselines` chooses it."""

    ngrams: NgramRewards = field(default_factory=dict)
    models: Mapping[str, ModelScores] = field(default_factory=dict)
    neighbours: Mapping[Part, ModelScores] = field(default_factory=dict)
    best: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    def scores_of(self, part: Part) -> dict[str, ModelScores]:
        """By name, those that have any."""
        found = {**self.models, "neighbours": self.neighbours.get(part, {})}
        return {name: scores for name, scores in found.items() if scores}

    def scores_of_all(self, part: Part, records: Iterable[Any]) -> dict[str, ModelScores]:
        """By name, those that have a score of each trajectory of the records."""
        hashes = {side.content_hash for record in records for side in record_trajectories(record)}
        return {name: scores for name, scores in self.scores_of(part).items() if hashes <= scores.keys()}

    def best_of(self, part: str, baselines: Mapping[str, Any]) -> dict[str, Any] | None:
        """The best one of a part of the report, if it is among the baselines there."""
        best = self.best.get(part)
        return best if best is not None and best["name"] in baselines else None
