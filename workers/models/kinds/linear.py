"""A linear model's files: its columns, the weight of each, and how the heads deviate."""

from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from workers.models.backbones.base import Placement
from workers.models.backbones.linear import LinearBackbone, Readout
from workers.models.files import WEIGHTS, load_heads, save_heads, tensors
from workers.models.heads import Heads, HeadsConfig
from workers.models.kinds import Names
from workers.schema.recipe import Recipe
from workers.text import StepTextRenderer

KIND = "linear"
STEP_RULE = "after each agent step, what its calls gave back included; V_0 before the first"


def renderer(recipe: Recipe, examples: Any = ()) -> StepTextRenderer:
    return StepTextRenderer(names_speakers=True, conditioned=recipe.conditioned)


def build(recipe: Recipe, examples: Any, like: Any, device: str, names: Names) -> LinearBackbone:
    readout = Readout(recipe.ensemble, *names)
    backbone = LinearBackbone(renderer(recipe), readout, cumulative=recipe.aggregation == "value")
    backbone.channels = recipe.channels
    return backbone


def heads(recipe: Recipe, width: int, names: Names) -> dict[str, Any]:
    return {"inner": 0, "named_criteria": names.criteria}


def save(backbone: LinearBackbone, heads: Heads, folder: Path, recipe: Recipe) -> dict[str, Any]:
    save_features(backbone, folder / WEIGHTS)
    return {
        "backbone": {"kind": KIND, **described(backbone)},
        "heads": save_heads(heads, folder),
        "text": {
            "speakers": backbone.renderer.names_speakers,
            "conditioned": [*backbone.renderer.conditioned],
        },
        "step_rule": STEP_RULE,
    }


def load(
    folder: Path, manifest: dict[str, Any], placement: Placement
) -> tuple[LinearBackbone, HeadsConfig, dict[str, Any]]:
    config, head_weights = load_heads(folder, manifest["heads"])
    readout = Readout(config.ensemble, config.labels, config.named_criteria)
    known, weights = manifest["backbone"], load_file(folder / WEIGHTS)
    backbone = LinearBackbone(
        StepTextRenderer(
            names_speakers=manifest["text"].get("speakers", False),
            conditioned=tuple(manifest["text"].get("conditioned", ())),
        ),
        readout,
        cumulative=known["cumulative"],
        columns=weights["columns"].long(),
    )
    load_features(backbone, weights, known)
    return backbone, config, head_weights


def save_features(backbone: LinearBackbone, path: Path) -> None:
    """The columns, and what is learnt of each."""
    kept = tensors(backbone)
    save_file(
        {name: tensor.int() if name == "columns" else tensor.float() for name, tensor in kept.items()}, path
    )


def load_features(backbone: LinearBackbone, weights: dict[str, Tensor], known: dict[str, Any]) -> None:
    """known: what `described` has told of it."""
    backbone.load_state_dict(weights | {"columns": weights["columns"].long()}, strict=True)
    backbone.penalty = known["penalty"]
    backbone.channels = tuple(known.get("channels", ()))  # earlier versions read all


def described(backbone: LinearBackbone) -> dict[str, Any]:
    return {
        "features": len(backbone.columns),
        "penalty": backbone.penalty,
        "channels": [*backbone.channels],
        "cumulative": backbone.cumulative,
    }
