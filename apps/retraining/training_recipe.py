"""The recipe that a retraining cycle trains by: that of the served model, as it fits the cycle."""

from typing import Any

from apps.datasets.models import DatasetVersion
from apps.training.models import RewardModel
from apps.training.recipes import model_recipe, with_objective
from workers.schema.builtin_recipes import AUTO, UNFROZEN
from workers.schema.parents import is_prior_mean
from workers.schema.recipe import FULL_FINE_TUNING
from workers.schema.recipe_keys import without_unread_keys

_LEARN_COMPARISONS = ("bradley_terry", "joint", "generative")


def retraining_recipe(
    model: RewardModel, dataset_version: DatasetVersion, *, heads_only: bool
) -> dict[str, Any]:
    """heads_only: with the model as the parent, as a linear or hybrid one always is. Raises DomainError."""
    recipe = without_unread_keys(model_recipe(model))
    if _ignores_comparisons(model, recipe, dataset_version):
        recipe = with_objective(recipe, "joint")
    if is_prior_mean(model.manifest):
        recipe |= {"folds": 0}  # they would measure on tasks that the parent has learnt from
    if not heads_only:
        return without_unread_keys(recipe | {"heads_only": False})
    # Heads on states that are computed once are not trained by the schedule of a whole backbone, nor with folds.
    schedule = UNFROZEN if recipe.get("unfrozen") else {}
    if recipe.get("backbone") == "decoder" and recipe.get("lora_rank") == 0 and not recipe.get("heads_only"):
        schedule = FULL_FINE_TUNING
    kept = {key: value for key, value in recipe.items() if key not in (*schedule, "folds")}
    return without_unread_keys(kept | {"heads_only": True})


def _ignores_comparisons(model: RewardModel, recipe: dict[str, Any], dataset_version: DatasetVersion) -> bool:
    """Whether `auto` chose an objective for data without comparisons, which the cycle has added since."""
    run = model.training_run
    is_by_auto = run is not None and run.recipe_name == AUTO
    has_comparisons = dataset_version.usable_pairs >= 2
    return is_by_auto and has_comparisons and recipe.get("objective") not in (*_LEARN_COMPARISONS, None)
