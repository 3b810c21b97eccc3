"""The stages of the training of a generative model, and when each of them ends, in steps of the optimiser."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from workers.errors import RewardError
from workers.schema.recipe import Recipe
from workers.train.checkpoints import newest_checkpoint

StageName = Literal["teach", "own", "reinforce"]


@dataclass(frozen=True, slots=True)
class StagePlan:
    """teach: from what people said. own: verdicts after the model's own critiques. reinforce: by right verdicts."""

    teach: int
    own: int
    reinforce: int
    per_epoch: int
    validation_steps: frozenset[int]

    @property
    def steps(self) -> int:
        return self.teach + self.own + self.reinforce

    def at(self, step: int) -> StageName:
        """Of the next step, after so many."""
        return "teach" if step < self.teach else "own" if step < self.teach + self.own else "reinforce"

    def start(self, stage: StageName) -> int:
        return {"teach": 0, "own": self.teach, "reinforce": self.teach + self.own}[stage]

    def length(self, stage: StageName) -> int:
        return {"teach": self.teach, "own": self.own, "reinforce": self.reinforce}[stage]

    def end(self, stage: StageName) -> int:
        return self.start(stage) + self.length(stage)


def stage_plan(recipe: Recipe, questions: int, *, writes: bool) -> StagePlan:
    """questions: of the training split. writes: whether anyone gave reasons; without, the model writes no critiques
    after which verdicts could be trained."""
    per_epoch = -(-questions // recipe.batch_pairs)
    own_epochs = recipe.own_critique_epochs if writes else 0
    teach, own = per_epoch * recipe.epochs, per_epoch * own_epochs
    steps = teach + own + recipe.reinforce_steps
    parts = recipe.evaluations_per_epoch
    measured = {
        epoch * per_epoch + max(1, round(per_epoch * part / parts))
        for epoch in range(recipe.epochs + own_epochs)
        for part in range(1, parts + 1)
    }
    every = max(1, recipe.reinforce_steps // 10)
    measured |= set(range(teach + own + every, steps + 1, every)) | {steps}
    return StagePlan(teach, own, recipe.reinforce_steps, per_epoch, frozenset(measured))


def recipe_to_resume(recipe: Recipe, checkpoints: Path) -> Recipe:
    """The recipe, without what the version of the newest checkpoint did not do.

    A run keeps the recipe it was started with, and recipes of before the stages have no keys for them: the defaults of
    today would ask for what was never begun.
    """
    state, _ = newest_checkpoint(checkpoints)
    if state is None or state.get("plan") is not None:
        return recipe
    return replace(recipe, own_critique_epochs=0, rating_weight=0.0, reinforce_singles=False)


def require_same_plan(state: Mapping[str, Any], plan: StagePlan, recipe: Recipe, *, ratings: int) -> None:
    """Raises RewardError where a checkpoint is of other stages than this training, as of an older version.

    state: of a checkpoint. ratings: those that are trained on, which older versions did not.
    """
    old = state.get("plan")
    if old is not None:
        if list(old) != [plan.teach, plan.own, plan.reinforce]:
            raise RewardError(
                f"the checkpoint is of {old[0]} + {old[1]} + {old[2]} steps (people's critiques, own critiques, "
                f"reinforcement), this training of {plan.teach} + {plan.own} + {plan.reinforce}; delete checkpoints/ "
                "to start from the beginning."
            )
        return
    needed = []
    if plan.own:
        needed.append("own_critique_epochs = 0")
    if ratings:
        needed.append("rating_weight = 0")
    if recipe.reinforce_steps and recipe.reinforce_singles:
        needed.append("reinforce_singles = false")
    if needed:
        raise RewardError(
            "the checkpoint is of an older version, which trained without the stages and losses of this one; delete "
            f"checkpoints/ to start from the beginning, or set {', '.join(needed)} in the recipe to go on as before."
        )
    if state.get("reinforces") and recipe.lora_rank:
        raise RewardError(
            "the checkpoint is of an older version, which reinforced the adapters of the first stage themselves; this "
            "one merges them first. Delete checkpoints/ to start from the beginning."
        )
