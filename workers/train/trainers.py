"""Which trainer a recipe has."""

from typing import TypeAlias

from workers.schema.recipe import CONVEX, Recipe
from workers.train.convex import ConvexTrainer
from workers.train.trainer import RewardTrainer

Trainer: TypeAlias = RewardTrainer | ConvexTrainer


def trainer_class(recipe: Recipe) -> type[RewardTrainer] | type[ConvexTrainer]:
    return ConvexTrainer if recipe.backbone in CONVEX else RewardTrainer
