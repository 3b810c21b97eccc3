"""Where a training goes on from a checkpoint of an earlier version: what of it still holds, and what is as it was."""

from typing import Any

from workers.objectives.bradley_terry import STRICT_PAIRS
from workers.schema.recipe import Recipe
from workers.train.events import Report
from workers.train.multi_objective import MultiObjectiveModule


def marks(module: MultiObjectiveModule) -> dict[str, Any]:
    """Part of a checkpoint: what its numbers mean, where versions or machines differ."""
    return {"validation_loss": module.validation_loss}


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
        "weights are chosen anew, from here on, by the likelihood of all choices"
    )
