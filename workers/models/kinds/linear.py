"""A linear model's files: its columns, the weight of each, and how the heads deviate."""

from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

from workers.models.backbones.linear import LinearBackbone, Readout
from workers.models.files import WEIGHTS, load_heads, save_heads, tensors
from workers.models.heads import Heads, HeadsConfig
from workers.models.kinds import Names
from workers.schema.recipe import Recipe
from workers.text import StepTextRenderer

KIND = "linear"
_STEP_RULE = "after each agent step, what its calls gave back included; V_0 before the first"


def renderer(recipe: Recipe, examples: Any = ()) -> StepTextRenderer:
    return StepTextRenderer()


def build(recipe: Recipe, examples: Any, like: Any, device: str, names: Names) -> LinearBackbone:
    readout = Readout(recipe.ensemble, *names)
    return LinearBackbone(renderer(recipe), readout, cumulative=recipe.aggregation == "value")


def heads(recipe: Recipe, width: int, names: Names) -> dict[str, Any]:
    return {"inner": 0, "named_criteria": names.criteria}


def save(backbone: LinearBackbone, heads: Heads, folder: Path, recipe: Recipe) -> dict[str, Any]:
    kept = tensors(backbone)
    save_file(
        {name: tensor.int() if name == "columns" else tensor.float() for name, tensor in kept.items()},
        folder / WEIGHTS,
    )
    return {
        "backbone": {
            "kind": KIND,
            "features": len(backbone.columns),
            "penalty": backbone.penalty,
            "cumulative": backbone.cumulative,
        },
        "heads": save_heads(heads, folder),
        "text": {},
        "step_rule": _STEP_RULE,
    }


def load(
    folder: Path, manifest: dict[str, Any], device: str
) -> tuple[LinearBackbone, HeadsConfig, dict[str, Any]]:
    config, head_weights = load_heads(folder, manifest["heads"])
    readout = Readout(config.ensemble, config.labels, config.named_criteria)
    weights = load_file(folder / WEIGHTS)
    columns = weights["columns"].long()
    backbone = LinearBackbone(
        StepTextRenderer(), readout, cumulative=manifest["backbone"]["cumulative"], columns=columns
    )
    backbone.load_state_dict(weights | {"columns": columns}, strict=True)
    backbone.penalty = manifest["backbone"]["penalty"]
    return backbone, config, head_weights
