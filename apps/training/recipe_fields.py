"""The keys of a recipe as a form: groups, kinds of fields, defaults and help."""

import dataclasses
from typing import Any, Literal, get_args, get_origin, get_type_hints

from apps.training.recipes import toml
from workers.schema.recipe import OBJECTIVES, Recipe
from workers.schema.recipe_help import PURPOSES, REASONS

# Every key is in exactly one group; a test compares them with the recipe.
GROUPS: dict[str, tuple[str, ...]] = {
    "Objective and feedback": (
        *("objective", "criterion", "joint_weights", "criteria_weights", "conditioned", "hindsight"),
        *(
            "td_lambda",
            "discount",
            "expectile",
            "mixture",
            "horizon",
            "prefixes",
            "regulariser",
            "alternatives",
            "action_numbers",
            "stages",
        ),
        *("annotators", "ties", "correction_weight"),
        *("margins", "strength_weights", "label_smoothing", "length_control", "centring", "beta"),
    ),
    "Model": (
        *(
            "backbone",
            "encoder",
            "encoder_prompt",
            "image_encoder",
            "decoder",
            "lora_rank",
            "lora_alpha",
            "base_weights",
        ),
        *("unfrozen", "heads_only", "channels", "chunk_tokens", "max_tokens", "width", "layers"),
        *("attention_heads", "grounding", "dropout", "ensemble", "aggregation"),
        *("distribution", "quantiles"),
    ),
    "Training": (
        *(
            "epochs",
            "learning_rate",
            "encoder_learning_rate",
            "encoder_layer_decay",
            "weight_decay",
            "warmup",
        ),
        *("clip_norm", "patience", "evaluations_per_epoch", "batch_pairs", "batch_tokens", "batch_tasks"),
    ),
    "Evaluation and search": ("folds", "search", "search_seconds"),
    "Generated comparisons": (
        *("generators", "factors", "factor_margin"),
        *("generated_per_trajectory", "generated_weight"),
    ),
    "Generative models": (
        *("critique_tokens", "critique_weight", "pointwise_weight", "rating_weight", "own_critique_epochs"),
        *("principles", "negate", "reinforce_steps", "reinforce_samples", "reinforce_rate", "reinforce_clip"),
        *("reinforce_kl", "reinforce_consistency", "reinforce_singles"),
    ),
    "Hardware": (
        *("gradient_checkpointing", "batch_per_process", "micro_tokens", "sharding", "precision"),
        "checkpoint_seconds",
    ),
}


@dataclasses.dataclass(frozen=True, slots=True)
class RecipeField:
    """kind: number, choice (one of choices), text, or toml (a list or table as TOML). default: as TOML."""

    key: str
    label: str
    kind: Literal["number", "choice", "flag", "text", "toml"]
    choices: tuple[str, ...]
    default: str
    purpose: str
    reason: str


def recipe_groups() -> list[tuple[str, list[RecipeField]]]:
    """By heading."""
    hints = get_type_hints(Recipe)
    defaults = Recipe()
    return [
        (title, [_field(key, hints[key], getattr(defaults, key)) for key in keys])
        for title, keys in GROUPS.items()
    ]


def _field(key: str, hint: Any, default: Any) -> RecipeField:
    choices: tuple[str, ...] = ()
    kind: Literal["number", "choice", "flag", "text", "toml"] = "toml"
    if key == "objective":
        kind, choices = "choice", tuple(OBJECTIVES)
    elif get_origin(hint) is Literal:
        kind, choices = "choice", get_args(hint)
    elif isinstance(default, bool):
        kind, choices = "flag", ("true", "false")
    elif isinstance(default, int | float):
        kind = "number"
    elif isinstance(default, str) or default is None:
        kind = "text"
    label = key.replace("_", " ").capitalize()
    return RecipeField(key, label, kind, choices, toml(default), PURPOSES[key], REASONS[key])
