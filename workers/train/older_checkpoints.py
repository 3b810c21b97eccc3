"""Where a training goes on from a checkpoint of an earlier version: what of it still holds, and what is as it was."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from workers.errors import RewardError
from workers.objectives.bradley_terry import STRICT_PAIRS
from workers.schema.recipe import Recipe
from workers.train.checkpoints import newest_checkpoint
from workers.train.events import Report
from workers.train.multi_objective import MultiObjectiveModule

FIRST = "first"  # subfolder of checkpoints/: of the model that finds hard negatives


def marks(module: MultiObjectiveModule) -> dict[str, Any]:
    """Part of a checkpoint: what its numbers mean, where versions or machines differ."""
    return {"validation_loss": module.validation_loss, "frozen_weights": frozen_weights(module.model)}


def frozen_weights(model: nn.Module) -> str:
    """The dtype of what is not trained; "float32" where there is nothing."""
    kept = {each.dtype for each in model.parameters() if not each.requires_grad and each.is_floating_point()}
    return "bfloat16" if torch.bfloat16 in kept else "float32"


def recipe_as_begun(checkpoints: Path, recipe: Recipe, device: str) -> Recipe:
    """The recipe, with the frozen weights that the run began with, where it leaves them to the machine.

    Earlier versions kept them in float32 on every machine, and did not say so. checkpoints: the run's folder.
    """
    is_open = recipe.base_weights == "auto" and (recipe.lora_rank or recipe.heads_only)
    if recipe.backbone != "decoder" or not is_open:
        return recipe
    for folder in (checkpoints, checkpoints / FIRST):
        state, _ = newest_checkpoint(folder)
        if state is not None:
            from workers.models.backbones.frozen_weights import (
                frozen_dtype,
            )  # decoders take seconds to import

            begun = replace(recipe, base_weights=state.get("frozen_weights", "float32"))
            return recipe if frozen_dtype(begun, device) == frozen_dtype(recipe, device) else begun
    return recipe


def require_same_frozen_weights(state: dict[str, Any], model: nn.Module, recipe: Recipe) -> None:
    """Raises RewardError where the checkpoint was trained on other frozen weights than the model has."""
    if recipe.backbone != "decoder" or ("frozen_weights" not in state and recipe.base_weights != "auto"):
        return  # an earlier version that kept them as the recipe says
    before, now = state.get("frozen_weights", "float32"), frozen_weights(model)
    if before != now:
        raise RewardError(
            f"the checkpoint was trained on frozen weights in {before}, and they are {now} here; set base_weights to "
            f"{before!r} in the recipe to go on, or delete checkpoints/ to start from the beginning.",
            pointer="/recipe/base_weights",
        )


def require_same_trained_weights(weights: dict[str, torch.Tensor], module: nn.Module) -> None:
    """Raises RewardError where the model of now trains what the checkpoint's did not: the rest would stay untrained."""
    trained = {name for name, parameter in module.named_parameters() if parameter.requires_grad}
    if missing := sorted(trained - weights.keys()):
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise RewardError(
            f"the checkpoint lacks {missing[0]}{more}: it is of an earlier version, whose models of this recipe had "
            "other parts. Finish the run with that version, or delete checkpoints/ to start from the beginning."
        )


def drop_what_differs(
    state: dict[str, Any], module: MultiObjectiveModule, recipe: Recipe, report: Report, *, validates: bool
) -> None:
    """Takes validation losses that cannot be compared with those of now out of a checkpoint's state.

    validates: whether any validation is left; with none, nothing is compared, and the best weights remain the best.
    """
    if "batches" not in state and state["best"] is not None:  # its losses are in another order
        state["best"].pop("losses", None)
    has_ended = not validates or 0 < recipe.patience <= state["bad"]
    if state.get("validation_loss", STRICT_PAIRS) == module.validation_loss or has_ended:
        return
    state.update(best=None, lowest=None, bad=0)
    report(
        message="the checkpoint is of an earlier version, whose validation loss was that of strict pairs; the best "
        "weights are chosen again, from here on, by the likelihood of all choices"
    )
