"""How each kind of backbone is made, saved and loaded. To add one: its file, and its line in KINDS."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers.models.backbone import Backbone
from workers.models.heads import HeadsConfig
from workers.models.kinds import decoder, features, step_encoder
from workers.schema.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Kind:
    """renderer(recipe, examples): what reads an item. build(recipe, examples, like, device): one before any training.

    heads(recipe, width): the shape of what stands on it. save(backbone, heads, folder, recipe): its files, and its part
    of the manifest. load(folder, manifest, device): the backbone, and the shape and weights of the heads.
    """

    renderer: Callable[..., Any]
    build: Callable[..., Backbone]
    heads: Callable[[Recipe, int], dict[str, Any]]
    save: Callable[..., dict[str, Any]]
    load: Callable[[Path, dict[str, Any], str], tuple[Backbone, HeadsConfig, dict[str, Any]]]


KINDS: dict[str, Kind] = {
    module.KIND: Kind(module.renderer, module.build, module.heads, module.save, module.load)
    for module in (step_encoder, decoder, features)
}
