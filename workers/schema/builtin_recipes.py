"""Recipes that every installation has, and the candidates of a search."""

from typing import Any

from workers.schema.decoder_recipes import DECODER_RECIPES
from workers.schema.recipe import GENERATIVE, OBJECTIVES, Recipe, parse_recipe

AUTO = "auto"  # the built-in recipe with a search
_UNFROZEN: dict[str, Any] = {
    "unfrozen": True,
    "epochs": 3,
    "batch_pairs": 16,
    "batch_tokens": 8192,
    "evaluations_per_epoch": 2,
    "patience": 3,
}
# What a recipe says of the feedback and its losses, whichever model learns from them.
_OF_FEEDBACK = (
    *(
        "objective",
        "criterion",
        "joint_weights",
        "criteria_weights",
        "aggregation",
        "margins",
        "strength_weights",
    ),
    *(
        "label_smoothing",
        "ties",
        "annotators",
        "folds",
        "generators",
        "generated_per_trajectory",
        "generated_weight",
    ),
)


def searched_recipe(recipe: Recipe, name: str) -> Recipe:
    """A candidate of the recipe's search: its own recipe, with what the search's recipe says of the feedback."""
    kept = {key: getattr(recipe, key) for key in _OF_FEEDBACK}
    kept = {key: list(value) if isinstance(value, tuple) else value for key, value in kept.items()}
    if name == "linear":
        return parse_recipe(kept | {"backbone": "linear"})
    if name == "hybrid":
        return parse_recipe(kept | {"backbone": "hybrid", "encoder": recipe.encoder})
    if name == "lora":
        return parse_recipe(kept | {"backbone": "decoder", "decoder": recipe.decoder})
    kept |= {"encoder": recipe.encoder, "max_tokens": recipe.max_tokens}
    return parse_recipe(kept | (_UNFROZEN if name == "unfrozen" else {}))


def builtin_recipes() -> dict[str, Recipe]:
    """By name. Named after their objective or decoder; the suffix says what is different."""
    return {
        AUTO: Recipe(search=("linear", "hybrid", "frozen", "unfrozen")),
        "bradley-terry": Recipe(),
        "bradley-terry-unfrozen": parse_recipe(_UNFROZEN),
        **{
            f"{name.replace('_', '-')}-linear": parse_recipe({"objective": name, "backbone": "linear"})
            for name in ("bradley_terry", "outcome", "process", "regression", "joint")
        },
        "bradley-terry-hybrid": parse_recipe({"backbone": "hybrid"}),
        **{
            name.replace("_", "-"): parse_recipe({"objective": name})
            for name in OBJECTIVES
            if name not in ("bradley_terry", GENERATIVE)  # no decoder comes with the installation
        },
        **{name: parse_recipe(values) for name, values in DECODER_RECIPES.items()},
    }
