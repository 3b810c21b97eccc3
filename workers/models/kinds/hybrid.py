"""A hybrid model's files: those of a linear one under another name, and those of its encoder."""

from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from workers.models.backbones.base import Placement
from workers.models.backbones.encoder import chunk_renderer, files_hash, load_encoder
from workers.models.backbones.hybrid import ChunkEncoder, HybridBackbone
from workers.models.backbones.linear import Readout
from workers.models.files import load_heads, save_heads
from workers.models.heads import Heads, HeadsConfig
from workers.models.kinds import Names, linear
from workers.models.kinds.encoder_files import (
    described_encoder,
    encoder_renderer,
    load_saved_encoder,
    save_encoder,
)
from workers.models.kinds.linear import heads as heads
from workers.schema.conditions import Condition
from workers.schema.recipe import Recipe
from workers.text import HybridRenderer

KIND = "hybrid"
_FEATURES = "features.safetensors"


def renderer(recipe: Recipe, examples: Any = ()) -> HybridRenderer:
    tokens = encoder_renderer(recipe, max_tokens=recipe.chunk_tokens, names_speakers=False)
    return HybridRenderer(tokens, names_speakers=True, conditioned=recipe.conditioned)


def build(
    recipe: Recipe, examples: Any, like: HybridBackbone | None, device: str, names: Names
) -> HybridBackbone:
    """like: one whose encoder is shared."""
    encoder = like.encoder if like is not None else _pretrained(recipe, device)
    readout = Readout(recipe.ensemble, *names)
    backbone = HybridBackbone(encoder, renderer(recipe), readout, cumulative=recipe.aggregation == "value")
    backbone.channels = recipe.channels
    return backbone


def save(backbone: HybridBackbone, heads: Heads, folder: Path, recipe: Recipe) -> dict[str, Any]:
    described = save_encoder(backbone.encoder.whole, folder, recipe)
    linear.save_features(backbone, folder / _FEATURES)
    return {
        "backbone": {
            "kind": KIND,
            **linear.described(backbone),
            "embedding_weight": backbone.embedding_weight,
            "layer": backbone.encoder.layer,
            **described,
        },
        "heads": save_heads(heads, folder),
        "text": {
            "chunk_tokens": recipe.chunk_tokens,
            "speakers": backbone.renderer.names_speakers,
            "conditioned": [*backbone.renderer.conditioned],
        },
        "step_rule": linear.STEP_RULE,
    }


def load(
    folder: Path, manifest: dict[str, Any], placement: Placement
) -> tuple[HybridBackbone, HeadsConfig, dict[str, Any]]:
    config, head_weights = load_heads(folder, manifest["heads"])
    known, text = manifest["backbone"], manifest["text"]
    weights = load_file(folder / _FEATURES)
    backbone = HybridBackbone(
        ChunkEncoder(
            load_saved_encoder(folder, known).to(placement.device), known["weights_sha256"], known["layer"]
        ),
        _renderer(
            folder,
            text["chunk_tokens"],
            names_speakers=text.get("speakers", False),
            conditioned=tuple(text.get("conditioned", ())),
        ),
        Readout(config.ensemble, config.labels, config.named_criteria),
        cumulative=known["cumulative"],
        columns=weights["columns"].long(),
    )
    linear.load_features(backbone, weights, known)
    backbone.embedding_weight = known["embedding_weight"]
    return backbone, config, head_weights


def _pretrained(recipe: Recipe, device: str) -> ChunkEncoder:
    described = described_encoder(recipe)
    encoder = load_encoder(described.transformer).to(device)
    return ChunkEncoder(encoder, files_hash(described.weight_files))


def _renderer(
    folder: Path, chunk_tokens: int, *, names_speakers: bool, conditioned: tuple[Condition, ...]
) -> HybridRenderer:
    tokens = chunk_renderer(folder, chunk_tokens=chunk_tokens, max_tokens=chunk_tokens)
    return HybridRenderer(tokens, names_speakers=names_speakers, conditioned=conditioned)
