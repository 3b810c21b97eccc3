"""How each kind of backbone is made, saved and loaded. To add one: its file, and its name in KINDS.

renderer(recipe, examples): what reads an item. build(recipe, examples, like, device): one before any training.
heads(recipe, width): the shape of what stands on it. save(backbone, heads, folder, recipe): its files, its part of the
manifest. load(folder, manifest, device): the backbone, and the shape and weights of the heads.
"""

from importlib import import_module
from typing import Any

KINDS = ("step-encoder", "decoder", "features")


def kind_module(kind: str) -> Any:
    """Imported when it is wanted: what decoders need takes seconds to import."""
    return import_module(f"workers.models.kinds.{kind.replace('-', '_')}")
