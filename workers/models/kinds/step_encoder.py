"""A step-encoder's files."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

from workers.errors import RewardError
from workers.models.backbones.base import Placement
from workers.models.backbones.chunk_encoder import hidden_size
from workers.models.backbones.encoder import chunk_renderer
from workers.models.backbones.step_encoder import GROUND_SCALE, Mixer, MixerConfig, StepEncoder
from workers.models.files import load_heads, save_heads, tensors
from workers.models.heads import Heads, HeadsConfig
from workers.models.kinds import Names
from workers.models.kinds.encoder_files import (
    EncoderParts,
    encoder_renderer,
    load_saved_parts,
    pretrained_parts,
    save_encoder,
)
from workers.models.kinds.picture_files import (
    load_picture_encoder,
    new_picture_encoder,
    picture_reading,
    save_picture_encoder,
)
from workers.schema.recipe import Recipe
from workers.text import ChunkRenderer
from workers.text.pictures import PictureReading

KIND = "step-encoder"
_MIXER = "mixer.safetensors"
_STEP_RULE = (
    "the last chunk of each agent step, its observations included; V_0 at the last chunk before the first"
)


def renderer(recipe: Recipe, examples: Any = ()) -> ChunkRenderer:
    return _renderer(recipe, picture_reading(new_picture_encoder(recipe.image_encoder)))


def _renderer(recipe: Recipe, pictures: PictureReading | None) -> ChunkRenderer:
    return encoder_renderer(
        recipe,
        max_tokens=recipe.max_tokens,
        names_speakers=True,
        conditioned=recipe.conditioned,
        pictures=pictures,
    )


def build(recipe: Recipe, examples: Any, like: StepEncoder | None, device: str, names: Names) -> StepEncoder:
    """like: one whose encoder is shared, where it is not trained."""
    shared = None
    if like is not None and not recipe.unfrozen:
        shared = EncoderParts(like.encoder, like.pooling, like.name.decode())
    sees = new_picture_encoder(recipe.image_encoder) if like is None else like.picture_encoder
    reads = _renderer(recipe, picture_reading(sees))
    parts = pretrained_parts(recipe, reads, shared)
    if recipe.unfrozen and recipe.gradient_checkpointing:
        base: Any = parts.encoder
        if not base.supports_gradient_checkpointing:
            raise RewardError(
                f"{type(base).__name__} of transformers cannot compute its activations twice; leave out "
                "gradient_checkpointing, and lower micro_tokens where memory runs out.",
                pointer="/gradient_checkpointing",
            )
        # transformers renames it
        enable = getattr(base, "activation_checkpointing_enable", base.gradient_checkpointing_enable)
        enable({"use_reentrant": False})
    config = MixerConfig(
        hidden=parts.pooling.size(hidden_size(parts.encoder)),
        width=recipe.width,
        layers=recipe.layers,
        attention_heads=recipe.attention_heads,
        grounding=recipe.grounding,
        dropout=recipe.dropout,
        ground_scale=GROUND_SCALE,
        conditioned=recipe.conditioned,
        picture_size=0 if sees is None else sees.size,
    )
    return StepEncoder(
        parts.encoder,
        Mixer(config),
        reads,
        frozen=not recipe.unfrozen,
        name=parts.name,
        pooling=parts.pooling,
        layer_decay=recipe.encoder_layer_decay,
        picture_encoder=sees,
    )


def heads(recipe: Recipe, width: int, names: Names) -> dict[str, Any]:
    return {"inner": max(8, width // 4), "dropout": recipe.dropout}


def save(backbone: StepEncoder, heads: Heads, folder: Path, recipe: Recipe) -> dict[str, Any]:
    described = save_encoder(backbone.encoder, folder, recipe, pooling=backbone.pooling)
    described |= save_picture_encoder(backbone.picture_encoder, folder, recipe.image_encoder)
    save_file(tensors(backbone.mixer), folder / _MIXER)
    return {
        "backbone": {"kind": KIND, **described, "unfrozen": recipe.unfrozen},
        "mixer": asdict(backbone.mixer.config) | {"dropout": 0.0},
        "heads": save_heads(heads, folder),
        "text": {
            "chunk_tokens": recipe.chunk_tokens,
            "max_tokens": recipe.max_tokens,
            "speakers": backbone.renderer.names_speakers,
            "conditioned": [*backbone.renderer.conditioned],
            "splits_negations": backbone.renderer.splits_negations,
        },
        "step_rule": _STEP_RULE,
    }


def load(
    folder: Path, manifest: dict[str, Any], placement: Placement
) -> tuple[StepEncoder, HeadsConfig, dict[str, Any]]:
    backbone, text = manifest["backbone"], manifest["text"]
    sees = load_picture_encoder(folder, backbone)
    reads = chunk_renderer(
        folder,
        chunk_tokens=text["chunk_tokens"],
        max_tokens=text["max_tokens"],
        names_speakers=text.get("speakers", False),
        conditioned=tuple(text.get("conditioned", ())),
        pictures=picture_reading(sees),
        splits_negations=text.get("splits_negations", False),  # earlier versions read negations as they stand
    )
    parts = load_saved_parts(folder, backbone, reads)
    weights, described = load_file(folder / _MIXER), dict(manifest["mixer"])
    if "heads" in manifest:
        config, head_weights = load_heads(folder, manifest["heads"])
    else:
        config, head_weights = _heads_of_before(weights, described)
    described["conditioned"] = tuple(described.get("conditioned", ()))  # earlier versions read none
    mixer = Mixer(MixerConfig(**described))
    mixer.load_state_dict(weights, strict=True)
    frozen = not backbone["unfrozen"]
    model = StepEncoder(
        parts.encoder,
        mixer,
        reads,
        frozen=frozen,
        name=parts.name,
        pooling=parts.pooling,
        picture_encoder=sees,
    )
    mixer.double()  # it is small: its rounding is then nothing next to the encoder's
    return model, config, head_weights


def _heads_of_before(
    weights: dict[str, Any], described: dict[str, Any]
) -> tuple[HeadsConfig, dict[str, Any]]:
    """Artifacts of version 0.1 kept the scalar heads in the mixer. Takes them out."""
    names = [name for name in weights if name.startswith("heads.")]
    found = {f"scalar.{name.removeprefix('heads.')}": weights.pop(name) for name in names}
    found["scalar.second"] = found["scalar.second"].unsqueeze(-1)
    width = described["width"]
    return HeadsConfig(width=width, ensemble=described.pop("ensemble"), inner=max(8, width // 4)), found
