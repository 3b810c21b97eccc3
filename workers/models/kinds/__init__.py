"""How each kind of backbone is made, saved and loaded. To add one: its file, and its name in KINDS.

renderer(recipe, examples): what reads an item. build(recipe, examples, like, device, names): one before any training.
heads(recipe, width, names): the shape of what stands on it. names: of what is read off it, which only a backbone that
computes them itself looks at. save(backbone, heads, folder, recipe): its files, its part of the
manifest. load(folder, manifest, device): the backbone, and the shape and weights of the heads.
"""

from importlib import import_module
from typing import Any, NamedTuple

KINDS = ("step-encoder", "decoder", "features", "linear", "hybrid")


class Names(NamedTuple):
    """Of what is read off a model next to its reward: labels of steps, criteria of rubrics."""

    labels: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()


def kind_module(kind: str) -> Any:
    """Imported when it is wanted: what decoders need takes seconds to import."""
    return import_module(f"workers.models.kinds.{kind.replace('-', '_')}")
