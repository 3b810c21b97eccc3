"""Baselines that were fitted to the model's training data, next to rules that look at no text."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from workers.evaluate.ngram_baseline import NgramRewards
from workers.models import ModelScore

LinearScores: TypeAlias = Mapping[str, ModelScore]  # by content hash


@dataclass(frozen=True, slots=True)
class LearnedBaselines:
    """ngrams: of comparisons. linear: of all kinds of feedback, by a model with the backbone `linear`; each empty where
    there is none."""

    ngrams: NgramRewards = field(default_factory=dict)
    linear: LinearScores = field(default_factory=dict)
