"""How each kind of backbone is made, saved and loaded. To add one: its file, and its name in KINDS.

renderer(recipe, examples): what reads an item. build(recipe, examples, like, device, names): one before any training.
heads(recipe, width, names): the shape of what stands on it, as arguments of `HeadsConfig` or as one. names:
of what is read off it, which only a backbone that computes them itself looks at. save(backbone, heads, folder, recipe):
its files, its part of the manifest. load(folder, manifest, placement): the backbone, and the shape and weights of the
heads.
"""

import json
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from workers.schema.parents import DECODER_KINDS
from workers.schema.recipe import IMPLICIT, Recipe

KINDS = (
    "step-encoder",
    "decoder",
    "features",
    "linear",
    "hybrid",
    "classifier",
    "gated-decoder",
    "process-decoder",
    "implicit-process",
    "vision-decoder",
    "goal-likeness",
)


class Names(NamedTuple):
    """Of what is read off a model next to its reward: labels of steps, criteria of rubrics."""

    labels: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()


def kind_module(kind: str) -> Any:
    """Imported when it is wanted: what decoders need takes seconds to import."""
    return import_module(f"workers.models.kinds.{kind.replace('-', '_')}")


def recipe_kind(recipe: Recipe) -> str:
    """The kind that a recipe trains: of a decoder whose folder holds an imported model, that model's."""
    if recipe.objective == IMPLICIT:
        return "implicit-process"
    if recipe.backbone != "decoder":
        return recipe.backbone
    path = Path(recipe.decoder) / "touchstone.json"
    if not path.is_file():
        return "vision-decoder" if _sees(Path(recipe.decoder)) else recipe.backbone
    kind = json.loads(path.read_text(encoding="utf-8")).get("backbone", {}).get("kind")
    return kind if kind in DECODER_KINDS else recipe.backbone


def _sees(folder: Path) -> bool:
    """Whether it is a vision-language model with its image processor. Without one, only its text can be read."""
    path = folder / "config.json"
    has_images = (folder / "preprocessor_config.json").is_file() or (
        folder / "processor_config.json"
    ).is_file()
    return has_images and path.is_file() and "vision_config" in json.loads(path.read_text(encoding="utf-8"))
