"""Components that are computed rather than learnt: one file each. A rule rates an item by what it holds."""

from collections.abc import Callable
from typing import Any

from workers.engine.rules import length, pattern, repetition, tools
from workers.schema import ScoreInput
from workers.schema.endpoints import (
    Component,
    Pattern,
    RepetitionPenalty,
    StepPenalty,
    TokenPenalty,
    ToolFormat,
    ToolMatch,
)
from workers.schema.model_score import ModelScore

Count = Callable[[str], int]
RULES: dict[type, Callable[[Any, ScoreInput, Count], ModelScore]] = {
    StepPenalty: length.steps,
    TokenPenalty: length.tokens,
    RepetitionPenalty: repetition.rate,
    ToolFormat: tools.formatted,
    ToolMatch: tools.matched,
    Pattern: pattern.rate,
}


def rate(rule: Component, item: ScoreInput, count: Count) -> ModelScore:
    """count: of the tokens in a text. Raises RewardError for an item without what the rule needs."""
    return RULES[type(rule)](rule, item, count)
