"""A new model for a recipe, before any training."""

from collections.abc import Collection, Sequence
from typing import Any

from workers.models.heads import HeadsConfig
from workers.models.kinds import Names, kind_module
from workers.models.reward_model import RewardFrom, RewardModel
from workers.schema import Trajectory
from workers.schema.recipe import Recipe


def build(
    recipe: Recipe,
    examples: Sequence[Trajectory] = (),
    *,
    like: RewardModel | None = None,
    device: str = "cpu",
    labels: tuple[str, ...] = (),
    criteria: Collection[str] = (),
    reward_from: RewardFrom = "scalar",
) -> RewardModel:
    """Its random weights come from torch's global generator.

    labels, criteria: names of what is read off it next to the reward. examples: of what it is to read; the first is
    looked at. like: one whose untrained parts may be shared.
    """
    kind = kind_module(recipe.backbone)
    names = Names(labels, tuple(criteria))
    backbone = kind.build(recipe, examples, like and like.backbone, device, names)
    config: dict[str, Any] = kind.heads(recipe, backbone.width, names)
    heads = HeadsConfig(
        width=backbone.width, ensemble=recipe.ensemble, labels=labels, criteria=bool(criteria), **config
    )
    model = RewardModel(backbone, heads, aggregation=recipe.aggregation, reward_from=reward_from)
    backbone.set_heads(model.heads)
    return model.to(device)


def renderer_of(recipe: Recipe, examples: Sequence[Trajectory] = ()) -> Any:
    """What will read the trajectories, without its model."""
    return kind_module(recipe.backbone).renderer(recipe, examples)
