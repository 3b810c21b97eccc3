"""A model as a folder: config, safetensors, tokenizer and touchstone.json. Nothing in it is ever unpickled."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from workers.errors import RewardError
from workers.models.encoder import (
    EMBEDDED,
    WEIGHTS,
    chunk_renderer,
    empty_encoder,
    encoder_folder,
    file_hash,
    load_encoder,
    weights_hash,
)
from workers.models.loaded import LoadedModel
from workers.models.mixer import Mixer, MixerConfig
from workers.models.step_encoder import StepEncoder
from workers.schema import SCHEMA_VERSION, parse_json
from workers.schema.decode import require_object
from workers.schema.recipe import Recipe
from workers.text import template_fingerprint

MANIFEST = "touchstone.json"
_MIXER = "mixer.safetensors"
_COPIED = ("config.json", "tokenizer.json", "tokenizer_config.json")
STEP_RULE = (
    "the last chunk of each agent step, its observations included; V_0 at the last chunk before the first"
)


def save(
    model: StepEncoder, folder: Path, *, recipe: Recipe, reward: dict[str, float], snapshot: dict[str, Any]
) -> None:
    """Write an artifact. reward: {median, std}. The encoder's weights are in it only where they were trained
    or are not those that every installation has."""
    folder.mkdir(parents=True, exist_ok=True)
    source = encoder_folder(recipe.encoder)
    for name in _COPIED:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)
    own_weights = recipe.unfrozen or recipe.encoder != EMBEDDED
    if own_weights:
        save_file(_tensors(model.encoder), folder / WEIGHTS)
    save_file(_tensors(model.mixer), folder / _MIXER)
    renderer = chunk_renderer(folder, chunk_tokens=recipe.chunk_tokens, max_tokens=recipe.max_tokens)
    manifest = {
        "schema_version": SCHEMA_VERSION,
        "objective": recipe.objective,
        "criterion": recipe.criterion,
        "backbone": {
            "kind": recipe.backbone,
            "encoder": "own" if own_weights else EMBEDDED,
            "weights_sha256": weights_hash(folder if own_weights else source),
            "unfrozen": recipe.unfrozen,
        },
        "mixer": asdict(model.mixer.config) | {"dropout": 0.0},
        "text": {"chunk_tokens": recipe.chunk_tokens, "max_tokens": recipe.max_tokens},
        "template_fingerprint": template_fingerprint(renderer),
        "template_rewrites": False,
        "step_rule": STEP_RULE,
        "aggregation": recipe.aggregation,
        "reward": reward,
        "snapshot": snapshot,
        "evaluation": None,
        "files": {path.name: file_hash(path) for path in sorted(folder.iterdir()) if path.name != MANIFEST},
    }
    write_manifest(folder, manifest)


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2, allow_nan=False) + "\n")


def load(folder: Path, *, device: str = "cpu") -> LoadedModel:
    """A model of an artifact folder. Raises RewardError where it is not one that this version scores the same."""
    manifest = _manifest(folder)
    try:
        loaded = _load(folder, manifest)
    except (OSError, KeyError, TypeError, ValueError, RuntimeError, SafetensorError) as error:
        raise RewardError(
            f"{folder.name} is damaged ({type(error).__name__}: {error}); export it again, or train it anew."
        ) from error
    loaded.model.to(torch.device(device))
    return loaded


def _load(folder: Path, manifest: dict[str, Any]) -> LoadedModel:
    backbone, text = manifest["backbone"], manifest["text"]
    _require_whole(folder, manifest.get("files", {}))  # models of before had none
    own = backbone["encoder"] != EMBEDDED
    source = folder if own else encoder_folder(EMBEDDED)
    if (found := weights_hash(source)) != backbone["weights_sha256"]:
        raise RewardError(
            f"the encoder of {folder.name} has the hash {found[:12]}, but it was trained on "
            f"{backbone['weights_sha256'][:12]}; install the encoder it was trained on, or train anew."
        )
    renderer = chunk_renderer(folder, chunk_tokens=text["chunk_tokens"], max_tokens=text["max_tokens"])
    if template_fingerprint(renderer) != manifest["template_fingerprint"]:
        raise RewardError(
            f"{folder.name} was trained on another rendering of trajectories (its template fingerprint differs), "
            "so its rewards would not be its own; train it anew with this version, or load it with the old one."
        )
    encoder = empty_encoder(folder) if own else load_encoder(source)
    if own:
        encoder.load_state_dict(load_file(folder / WEIGHTS), strict=True)
    mixer = Mixer(MixerConfig(**manifest["mixer"]))
    mixer.load_state_dict(load_file(folder / _MIXER), strict=True)
    model = StepEncoder(encoder, mixer, frozen=not backbone["unfrozen"])
    return LoadedModel(model, renderer, manifest, backbone["weights_sha256"])


def _require_whole(folder: Path, files: dict[str, str]) -> None:
    """Weights with a flipped bit load like any others, and give wrong rewards."""
    for name, saved in files.items():
        if Path(name).name != name or file_hash(folder / name) != saved:
            raise RewardError(
                f"{folder.name} is damaged: {name} is not the file that was saved (its SHA-256 differs); restore it "
                "from a backup, export it again, or train it anew."
            )


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        raise RewardError(f"{folder.name} is no reward model: it has no {MANIFEST}.")
    try:
        manifest = require_object(parse_json(path.read_bytes()))
    except RewardError as error:
        raise RewardError(f"{MANIFEST} of {folder.name}: {error.message}") from None
    if manifest.get("schema_version") != SCHEMA_VERSION:
        raise RewardError(
            f"{folder.name} has schema version {manifest.get('schema_version')}, "
            f"this version reads {SCHEMA_VERSION}; train it anew."
        )
    return manifest


def _tensors(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in module.state_dict().items()}
