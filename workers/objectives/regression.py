"""Squared error on ratings and rubric scores, each as its place on its scale (0 the lowest, 1 the highest)."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from workers.objectives import Example, Objective, ObjectiveBatch
from workers.schema import RatingRecord, ScoreRecord
from workers.schema.recipe import Recipe


def squared_error(predicted: Tensor, place: Tensor) -> Tensor:
    """(predicted - place)^2, elementwise. predicted: [examples, heads]; place: [examples], in 0..1."""
    return (predicted - place.unsqueeze(-1)).square()


def place_on_scale(record: RatingRecord | ScoreRecord) -> float:
    """accept is 1, reject 0."""
    if isinstance(record, RatingRecord) and record.accept is not None:
        return float(record.accept)
    value = record.value if isinstance(record, ScoreRecord) else record.rating
    assert value is not None
    assert record.scale is not None
    low, high = record.scale
    return (value - low) / (high - low)


class Regression(Objective):
    """A rating, or a score by the recipe's criterion, is what the reward means, up to a learnt scale and offset.

    Without such a criterion, scores train the criterion head, and where there are no ratings the reward too: it is then
    what the criteria have in common.
    """

    name = "regression"
    kinds = (RatingRecord, ScoreRecord)

    def __init__(self, recipe: Recipe, examples: Sequence[Example]) -> None:
        super().__init__(recipe, examples)
        self.criterion = recipe.criterion
        self.has_ratings = any(isinstance(example.record, RatingRecord) for example in examples)
        self.scale = nn.Parameter(torch.tensor([0.0]))  # softplus(0) = 0.69
        self.offset = nn.Parameter(torch.tensor([0.5]))

    @classmethod
    def reject_reason(cls, record: Any, recipe: Recipe) -> str | None:
        if record.scale is not None and record.scale[0] >= record.scale[1]:
            return "on a scale without a range"
        if isinstance(record, RatingRecord):
            return "without the criterion" if recipe.criterion is not None else None
        if recipe.criterion is not None and record.criterion != recipe.criterion:
            return f"by the criterion {record.criterion!r}"
        return None

    @classmethod
    def validate_dataset(cls, examples: Sequence[Example]) -> str | None:
        if len({place_on_scale(_record(example)) for example in examples}) > 1:
            return None
        return f"all {len(examples)} ratings and scores are the same"

    def forward(self, batch: ObjectiveBatch) -> Tensor:
        rewards = batch.rewards() * functional.softplus(self.scale) + self.offset
        place = rewards.new_tensor([place_on_scale(_record(example)) for example in batch.examples])
        loss = squared_error(rewards, place)
        if self.criterion is not None:
            return loss
        by_criterion = rewards.new_tensor(
            [float(example.criterion is not None) for example in batch.examples]
        ).unsqueeze(-1)
        own = by_criterion * squared_error(batch.scores(), place)
        return own + (1 - by_criterion if self.has_ratings else torch.ones_like(by_criterion)) * loss


def _record(example: Example) -> Any:
    return example.record


OBJECTIVE = Regression
