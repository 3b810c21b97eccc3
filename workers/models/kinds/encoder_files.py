"""The encoder among a model's files: its weights only where they were trained, or are not those that every installation
has."""

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import nn

from workers.errors import RewardError
from workers.models.backbones.encoder import (
    EMBEDDED,
    chunk_renderer,
    describe_encoder,
    embeddings_name,
    empty_encoder,
    encoder_folder,
    files_hash,
    load_encoder,
    weights_hash,
)
from workers.models.backbones.pooling import EmbeddingPooling, load_pooling
from workers.models.files import WEIGHTS, tensors
from workers.schema.conditions import Condition
from workers.schema.encoder_folder import (
    POOLING_WEIGHTS,
    READING_FILE,
    EncoderDescription,
    EncoderReading,
    read_encoder_folder,
    reading_to_json,
)
from workers.schema.recipe import Recipe
from workers.schema.safetensors_header import tensor_shapes
from workers.text import ChunkRenderer
from workers.text.pictures import PictureReading

_COPIED = ("config.json", "tokenizer.json", "tokenizer_config.json")


@dataclass(frozen=True, slots=True)
class EncoderParts:
    """name: of what makes embeddings, in the keys of caches."""

    encoder: nn.Module
    pooling: EmbeddingPooling
    name: str


def described_encoder(recipe: Recipe) -> EncoderDescription:
    return describe_encoder(recipe.encoder, recipe.encoder_prompt)


def encoder_renderer(
    recipe: Recipe,
    *,
    max_tokens: int,
    names_speakers: bool,
    conditioned: tuple[Condition, ...] = (),
    pictures: PictureReading | None = None,
) -> ChunkRenderer:
    described = described_encoder(recipe)
    return chunk_renderer(
        described.transformer,
        chunk_tokens=recipe.chunk_tokens,
        max_tokens=max_tokens,
        names_speakers=names_speakers,
        description=described,
        conditioned=conditioned,
        pictures=pictures,
        splits_negations=bool(conditioned),
    )


def pretrained_parts(recipe: Recipe, renderer: ChunkRenderer, like: EncoderParts | None) -> EncoderParts:
    """like: of a model whose encoder is shared."""
    described = described_encoder(recipe)
    encoder = like.encoder if like is not None else load_encoder(described.transformer)
    pooling = like.pooling if like is not None else _pooling(described.folder, described.reading, renderer)
    return EncoderParts(encoder, pooling, embeddings_name(files_hash(described.weight_files), pooling))


def save_encoder(
    encoder: nn.Module, folder: Path, recipe: Recipe, *, pooling: EmbeddingPooling | None = None
) -> dict[str, str]:
    """Its part of the manifest's `backbone`. pooling: None where states are read in the middle of the encoder."""
    described = described_encoder(recipe)
    source = described.transformer
    for name in _COPIED:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)
    if recipe.encoder != EMBEDDED:
        _save_reading(folder, described.reading, pooling)
    own_weights = recipe.unfrozen or recipe.encoder != EMBEDDED
    if own_weights:
        _save_weights(encoder, folder / WEIGHTS, described, is_frozen=not recipe.unfrozen)
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


def load_saved_parts(folder: Path, described: dict[str, Any], renderer: ChunkRenderer) -> EncoderParts:
    encoder = load_saved_encoder(folder, described)
    reading = EncoderReading()
    if (folder / READING_FILE).is_file():
        reading = read_encoder_folder(folder, is_model=True).reading
    pooling = _pooling(folder, reading, renderer)
    return EncoderParts(encoder, pooling, embeddings_name(described["weights_sha256"], pooling))


def _pooling(folder: Path, reading: EncoderReading, renderer: ChunkRenderer) -> EmbeddingPooling:
    # Counted as sentence-transformers does, with what a space at the end of the prompt may be a token of.
    prompt = renderer.tokenizer.encode(reading.prompt, add_special_tokens=False).ids
    return load_pooling(folder, reading, skipped=len(renderer.before) + len(prompt)).eval()


def _save_weights(encoder: nn.Module, path: Path, described: EncoderDescription, *, is_frozen: bool) -> None:
    """Of a frozen encoder the same file, where it holds just its weights: the names of embeddings stay the same."""
    weights = tensors(encoder)
    (first, *others) = described.weight_files
    if is_frozen and not others and tensor_shapes(first).keys() == weights.keys():
        shutil.copyfile(first, path)
    else:
        save_file(weights, path)


def _save_reading(folder: Path, reading: EncoderReading, pooling: EmbeddingPooling | None) -> None:
    if pooling is None:
        reading = replace(reading, pooling=("mean",), layers=(), in_pooling=True)
    elif weights := tensors(pooling):
        save_file(weights, folder / POOLING_WEIGHTS)
    values = reading_to_json(
        replace(reading, layers=tuple(replace(each, source="") for each in reading.layers))
    )
    (folder / READING_FILE).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
