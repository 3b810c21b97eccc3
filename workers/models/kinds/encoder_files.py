"""The encoder among a model's files: its weights only where they were trained, or are not those that every installation
has."""

import shutil
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import nn

from workers.errors import RewardError
from workers.models.backbones.encoder import (
    EMBEDDED,
    empty_encoder,
    encoder_folder,
    load_encoder,
    weights_hash,
)
from workers.models.files import WEIGHTS, tensors
from workers.schema.recipe import Recipe

_COPIED = ("config.json", "tokenizer.json", "tokenizer_config.json")


def save_encoder(encoder: nn.Module, folder: Path, recipe: Recipe) -> dict[str, str]:
    """Its part of the manifest's `backbone`."""
    source = encoder_folder(recipe.encoder)
    for name in _COPIED:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)
    own_weights = recipe.unfrozen or recipe.encoder != EMBEDDED
    if own_weights:
        save_file(tensors(encoder), folder / WEIGHTS)
    return {
        "encoder": "own" if own_weights else EMBEDDED,
        "weights_sha256": weights_hash(folder if own_weights else source),
    }


def load_saved_encoder(folder: Path, described: dict[str, Any]) -> nn.Module:
    """described: the manifest's `backbone`. Raises RewardError where the installation has other weights."""
    own = described["encoder"] != EMBEDDED
    source = folder if own else encoder_folder(EMBEDDED)
    if (found := weights_hash(source)) != described["weights_sha256"]:
        raise RewardError(
            f"the encoder of {folder.name} has the hash {found[:12]}, but it was trained on "
            f"{described['weights_sha256'][:12]}; install the encoder it was trained on, or train again."
        )
    if not own:
        return load_encoder(source)
    encoder = empty_encoder(folder)
    encoder.load_state_dict(load_file(folder / WEIGHTS), strict=True)
    return encoder
