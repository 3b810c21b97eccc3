"""A feature network's files."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

from workers.models.backbones.base import Placement
from workers.models.backbones.features import FeatureNetwork
from workers.models.files import WEIGHTS, load_heads, save_heads, tensors
from workers.models.heads import Heads, HeadsConfig
from workers.models.kinds import Names
from workers.schema import Trajectory
from workers.schema.recipe import Recipe
from workers.text import NumberRenderer
from workers.text.numeric import goal_numbers

KIND = "features"
_STEP_RULE = "after each agent step; V_0 before the first"


def renderer(recipe: Recipe, examples: Sequence[Trajectory] = ()) -> NumberRenderer:
    """Raises RewardError where the examples have no numbers."""
    stated = goal_numbers(examples[0].conditions.get("goal", "")) if examples else None
    size = None if stated is None else len(stated)
    free = NumberRenderer(None, recipe.max_tokens, recipe.conditioned, size)
    known = [len(free.render(example).rows[0]) for example in examples[:1]]
    return replace(free, features=known[0] if known else None)


def build(
    recipe: Recipe, examples: Sequence[Trajectory], like: Any, device: str, names: Names
) -> FeatureNetwork:
    reads = renderer(recipe, examples)
    return FeatureNetwork(reads, width=recipe.width, layers=recipe.layers, dropout=recipe.dropout)


def heads(recipe: Recipe, width: int, names: Names) -> dict[str, Any]:
    return {"inner": max(8, width // 4), "dropout": recipe.dropout}


def save(backbone: FeatureNetwork, heads: Heads, folder: Path, recipe: Recipe) -> dict[str, Any]:
    save_file(tensors(backbone), folder / WEIGHTS)
    return {
        "backbone": {"kind": KIND, "width": recipe.width, "layers": recipe.layers},
        "heads": save_heads(heads, folder),
        "text": {
            "features": backbone.renderer.features,
            "max_steps": backbone.renderer.max_steps,
            "conditioned": [*backbone.renderer.conditioned],
            "goal_numbers": backbone.renderer.goal_numbers,
        },
        "step_rule": _STEP_RULE,
    }


def load(
    folder: Path, manifest: dict[str, Any], placement: Placement
) -> tuple[FeatureNetwork, HeadsConfig, dict[str, Any]]:
    shape, text = manifest["backbone"], manifest["text"]
    reads = NumberRenderer(
        text["features"], text["max_steps"], tuple(text.get("conditioned", ())), text.get("goal_numbers")
    )
    network = FeatureNetwork(reads, width=shape["width"], layers=shape["layers"], dropout=0.0)
    network.load_state_dict(load_file(folder / WEIGHTS), strict=True)
    config, head_weights = load_heads(folder, manifest["heads"])
    return network.double(), config, head_weights
