"""Squared error on ratings and rubric scores, each as its place on its scale (0 the lowest, 1 the highest)."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from workers.errors import RewardError
from workers.objectives import Example, Objective, ObjectiveBatch
from workers.objectives.distributions import gaussian_loss, pinball_loss
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

    Without such a criterion, scores train the criterion head, and where there are no ratings the reward too: each by
    the weight of its criterion (`criteria_weights`, or the record's), relative to the mean weight; below 0 by the place
    from the top of the scale. `neutral` criteria, whose weight is not known, train only the criterion head. Where no
    weight is known at all, as in data without a rubric, each is taken for one where more is better (`assumed`).

    Where the model has a distribution of the reward, that is what a rating is drawn from; of criteria it has none.
    """

    name = "regression"
    kinds = (RatingRecord, ScoreRecord)
    reads_steps = False

    def __init__(self, recipe: Recipe, examples: Sequence[Example]) -> None:
        super().__init__(recipe, examples)
        self.criterion, self.weights = recipe.criterion, recipe.criteria_weights
        self.levels = recipe.quantiles
        self.has_ratings = any(isinstance(example.record, RatingRecord) for example in examples)
        scores = [example for example in examples if isinstance(example.record, ScoreRecord)]
        known = [weight for weight in map(self._weight, scores) if weight]
        self.mean_weight = sum(map(abs, known)) / len(known) if known else 1.0
        names = {str(example.criterion) for example in scores if self._weight(example) is None}
        teaches = self.criterion is None and not self.has_ratings
        is_alone = teaches and not known and recipe.objective == self.name
        if is_alone and scores and not names:
            raise RewardError(
                "every criterion has the weight 0, so that no score trains the reward; set criteria_weights in the "
                "recipe, such as {correct = 1.0, harmful = -1.0}, or name one criterion as `criterion`.",
                pointer="/criteria_weights",
            )
        self.assumed = sorted(names) if is_alone else []
        self.neutral = sorted(names) if teaches and not is_alone else []
        self.scale = nn.Parameter(torch.tensor([0.0]))  # softplus(0) = 0.69
        self.offset = nn.Parameter(torch.tensor([0.5]))

    def fix_scale(self) -> None:
        """A reward is a place on the scale, up to the offset. A learnt scale takes over what a ridge penalty holds back
        of the weights: the fit then is one without a penalty, as far as it goes."""
        with torch.no_grad():
            self.scale.fill_(math.log(math.e - 1))  # softplus gives 1
        self.scale.requires_grad_(False)

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
    def validate_dataset(cls, examples: Sequence[Example], recipe: Recipe) -> str | None:
        if len({place_on_scale(_record(example)) for example in examples}) > 1:
            return None
        return f"all {len(examples)} ratings and scores are the same"

    @property
    def line(self) -> dict[str, float]:
        """The place on the scale that a reward means is slope * reward + offset."""
        slope = functional.softplus(self.scale.detach())
        return {"slope": float(slope), "offset": float(self.offset.detach())}

    def forward(self, batch: ObjectiveBatch) -> Tensor:
        return self._losses(batch)

    def validation_metrics(self, batch: ObjectiveBatch) -> dict[str, Tensor]:
        return {"loss": self._losses(batch, is_trained=False).mean(-1)}

    def _reward_loss(self, batch: ObjectiveBatch, place: Tensor, *, is_trained: bool) -> Tensor:
        """[examples, heads]: how far the reward, or its distribution, is from a place on the scale."""
        slope = functional.softplus(self.scale)
        rewards = batch.rewards() * slope + self.offset
        if (variances := batch.variances()) is not None:
            stds = variances.sqrt() * slope
            return (
                gaussian_loss(rewards, stds, place) if is_trained else gaussian_loss(rewards, stds, place, 0)
            )
        if (quantiles := batch.quantiles()) is not None:
            return pinball_loss(quantiles * slope + self.offset, place.new_tensor(self.levels), place)
        return squared_error(rewards, place)

    def _losses(self, batch: ObjectiveBatch, *, is_trained: bool = True) -> Tensor:
        place = batch.numbers(
            "places", lambda: [place_on_scale(_record(example)) for example in batch.examples]
        )
        if self.criterion is not None:
            return self._reward_loss(batch, place, is_trained=is_trained)
        by_criterion = batch.numbers(
            "by criterion", lambda: [float(example.criterion is not None) for example in batch.examples]
        )
        weight = batch.numbers("weights", lambda: [self._known_weight(example) for example in batch.examples])
        own = by_criterion.unsqueeze(-1) * squared_error(batch.scores(), place)
        counts = 1 - by_criterion if self.has_ratings else weight.abs() / self.mean_weight
        wanted = torch.where(weight < 0, 1 - place, place)
        return own + counts.unsqueeze(-1) * self._reward_loss(batch, wanted, is_trained=is_trained)

    def _known_weight(self, example: Example) -> float:
        weight = self._weight(example)
        unknown = 1.0 if self.assumed else 0.0
        return unknown if weight is None else weight

    def _weight(self, example: Example) -> float | None:
        """1 for a rating; None where it is not known."""
        record = _record(example)
        if isinstance(record, RatingRecord):
            return 1.0
        return self.weights.get(record.criterion, record.criterion_weight)


def _record(example: Example) -> Any:
    return example.record


OBJECTIVE = Regression
