"""Ratings and rubric scores as ordered categories: the cumulative link model.

A squared error takes the step from 1 to 2 for as large as that from 4 to 5. Here each scale has thresholds of its own,
which are learnt, so that only the order of the marks counts.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from workers.objectives import Example, Objective, ObjectiveBatch
from workers.schema import RatingRecord, ScoreRecord
from workers.schema.recipe import Recipe

_MOST_LEVELS = 20  # of a scale; finer ones are cut into as many of equal width
_PRIOR_SPREAD = 2.0  # standard deviation of a threshold around an even one, in logits
_Scale = tuple[float, float]


def cumulative_link_loss(rewards: Tensor, level: Tensor, thresholds: Tensor) -> Tensor:
    """-log[s(t_(y+1) - r) - s(t_y - r)], elementwise; t_0 is minus infinity, t_K infinity.

    rewards: [examples, heads]; level: [examples] long, y from 0; thresholds: [examples, K - 1], ascending. The
    proportional odds model (McCullagh 1980, section 2).
    """
    padded = torch.cat(
        [
            thresholds.new_full((len(thresholds), 1), -math.inf),
            thresholds,
            thresholds.new_full((len(thresholds), 1), math.inf),
        ],
        1,
    )
    low = padded.gather(1, level.unsqueeze(1)) - rewards
    high = padded.gather(1, level.unsqueeze(1) + 1) - rewards
    # log[s(b) - s(a)] = log s(b) + log s(-a) + log(1 - e^(a - b)), which loses no digits far from the thresholds.
    gap = torch.where(torch.isinf(low) | torch.isinf(high), torch.full_like(low, -math.inf), low - high)
    finite_low = torch.where(torch.isinf(low), torch.zeros_like(low), low)
    finite_high = torch.where(torch.isinf(high), torch.zeros_like(high), high)
    above = torch.where(torch.isinf(low), torch.zeros_like(low), functional.logsigmoid(-finite_low))
    below = torch.where(torch.isinf(high), torch.zeros_like(high), functional.logsigmoid(finite_high))
    return -(above + below + torch.log1p(-gap.exp()))


class Ordinal(Objective):
    """Ratings, and scores by the recipe's criterion; accept and reject are a scale of two. Scales with the same ends
    have the same thresholds. A scale of whole numbers has a level for each; any other is cut into levels of equal
    width. Thresholds have a normal prior around even ones, so that a scale of which only one mark was given still says
    whether that is a high one or a low one."""

    name = "ordinal"
    kinds = (RatingRecord, ScoreRecord)
    reads_steps = False
    joint_weight = 0.0  # `regression` learns from the same records

    def __init__(self, recipe: Recipe, examples: Sequence[Example]) -> None:
        super().__init__(recipe, examples)
        self._levels: dict[_Scale, int] = {}
        for scale in sorted({scale_of(example.record) for example in examples}):
            values = [_value(example.record) for example in examples if scale_of(example.record) == scale]
            self._levels[scale] = level_count(scale, values)
        self._examples = max(1, len(examples))
        starts = {_name(scale): _evenly(count) for scale, count in self._levels.items()}
        self.first = nn.ParameterDict({name: nn.Parameter(start[:1]) for name, start in starts.items()})
        self.gaps = nn.ParameterDict(
            {name: nn.Parameter(torch.log(torch.expm1(start.diff()))) for name, start in starts.items()}
        )

    @classmethod
    def reject_reason(cls, record: Any, recipe: Recipe) -> str | None:
        low, high = scale_of(record)
        if low >= high:
            return "on a scale without a range"
        if isinstance(record, RatingRecord):
            return "without the criterion" if recipe.criterion is not None else None
        if recipe.criterion is None:
            return "by a criterion, where the recipe names none"
        return None if record.criterion == recipe.criterion else f"by the criterion {record.criterion!r}"

    @classmethod
    def validate_dataset(cls, examples: Sequence[Example], recipe: Recipe) -> str | None:
        if len({(scale_of(example.record), _value(example.record)) for example in examples}) > 1:
            return None
        return f"all {len(examples)} ratings and scores are the same"

    def thresholds(self, scale: _Scale) -> Tensor:
        """[levels - 1], ascending."""
        name = _name(scale)
        return torch.cat([self.first[name], functional.softplus(self.gaps[name])]).cumsum(0)

    def forward(self, batch: ObjectiveBatch) -> Tensor:
        rewards = batch.rewards()
        losses = torch.zeros_like(rewards)
        for scale in self._levels:
            places, level = batch.constant(f"levels {scale}", partial(self._levels_in, batch, scale))
            if not len(places):
                continue
            places, level = places.to(rewards.device), level.to(rewards.device)
            thresholds = self.thresholds(scale).to(rewards).expand(len(places), -1)
            losses = losses.index_put((places,), cumulative_link_loss(rewards[places], level, thresholds))
        return losses + self._prior().to(losses) / self._examples

    def _prior(self) -> Tensor:
        """Minus the log of the thresholds' prior density, but for a constant; of all examples together."""
        away = [
            (self.thresholds(scale) - _evenly(count).to(self.first[_name(scale)])).square().sum()
            for scale, count in self._levels.items()
        ]
        return torch.stack(away).sum() / (2 * _PRIOR_SPREAD**2) if away else torch.zeros(())

    def _levels_in(self, batch: ObjectiveBatch, scale: _Scale) -> tuple[Tensor, Tensor]:
        """The places in the batch of what is on this scale, and their levels: [n] long each."""
        count = self._levels[scale]
        found = [
            (place, level_of(_value(example.record), scale, count))
            for place, example in enumerate(batch.examples)
            if scale_of(example.record) == scale
        ]
        return torch.tensor([place for place, _ in found], dtype=torch.long), torch.tensor(
            [level for _, level in found], dtype=torch.long
        )

    def measured(self, batch: ObjectiveBatch) -> list[int]:
        return [
            place for place, example in enumerate(batch.examples) if scale_of(example.record) in self._levels
        ]

    def validation_metrics(self, batch: ObjectiveBatch) -> dict[str, Tensor]:
        return {"loss": self(batch).mean(-1)[self.measured(batch)]}


def scale_of(record: Any) -> _Scale:
    """(0, 1) of accept and reject."""
    return (0.0, 1.0) if record.scale is None else (float(record.scale[0]), float(record.scale[1]))


def level_count(scale: _Scale, values: Sequence[float]) -> int:
    low, high = scale
    is_whole = all(float(value - low).is_integer() for value in (*values, high))
    return int(high - low) + 1 if is_whole and high - low < _MOST_LEVELS else _MOST_LEVELS


def level_of(value: float, scale: _Scale, count: int) -> int:
    """From 0, the lowest, to count - 1."""
    low, high = scale
    if high - low + 1 == count:
        return round(value - low)
    return min(count - 1, int((value - low) / (high - low) * count))


def _value(record: Any) -> float:
    if isinstance(record, RatingRecord):
        return float(bool(record.accept)) if record.rating is None else record.rating
    return float(record.value)


def _name(scale: _Scale) -> str:
    return f"from {scale[0]:g} to {scale[1]:g}".replace(".", "_")


def _evenly(count: int) -> Tensor:
    """[count - 1]: thresholds between which a standard logistic variable lies equally often."""
    shares = torch.arange(1, count, dtype=torch.double) / count
    return torch.logit(shares).float()


OBJECTIVE = Ordinal
