"""A linear model with eight heads, fitted to random choices between given trajectories."""

import random
from collections.abc import Sequence
from pathlib import Path

from workers.models import Lineage, renderer_of, save
from workers.objectives import Examples, collect_training
from workers.schema import PreferenceRecord, Trajectory
from workers.schema.recipe import parse_recipe
from workers.train.convex import ConvexTrainer
from workers.train.multi_objective import MultiObjectiveModule
from workers.train.penalty_choice import ChosenPenalty

_VARIANCE = 0.3


def save_linear_of(trajectories: Sequence[Trajectory], folder: Path) -> Path:
    """Neighbours are compared."""
    dice = random.Random(0)
    records = [
        PreferenceRecord(annotator="annotator", a=a, b=b, choice=dice.choice(("a", "b")))
        for a, b in zip(trajectories[::2], trajectories[1::2], strict=True)
    ]
    recipe = parse_recipe({"backbone": "linear"})
    examples = collect_training(records, renderer_of(recipe), recipe)
    module = MultiObjectiveModule(recipe, examples, seed=0)
    trainer = ConvexTrainer(
        module,
        recipe,
        Examples(),
        seed=0,
        report=lambda **event: None,
        penalty=ChosenPenalty(_VARIANCE, embedding_weight=0.0),
    )
    trainer.run()
    module.model.backbone.finish_training()
    reward = {"median": 0.0, "std": 1.0}
    save(module.model, folder, recipe=recipe, reward=reward, criteria={}, lineage=Lineage())
    return folder
