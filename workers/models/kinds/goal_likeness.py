"""A model of goal likeness as files: those of its dual encoder, and what comparisons have taught it."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

from workers.errors import RewardError
from workers.models.backbones.base import Placement
from workers.models.backbones.decoder import decoder_folder
from workers.models.backbones.dual_encoder import DualEncoder, dual_tokenizer, load_dual_encoder
from workers.models.backbones.goal_likeness import GoalLikeness
from workers.models.cache.embeddings import ChunkCache
from workers.models.files import WEIGHTS
from workers.models.heads import Heads, HeadsConfig
from workers.models.kinds import Names
from workers.models.kinds.implicit_process import StateHeadsConfig
from workers.schema.goal_likeness import GoalTexts
from workers.schema.recipe import Recipe
from workers.text.newest_pictures import NewestPictureRenderer
from workers.text.pictures import PictureReading

KIND = "goal-likeness"
STEP_RULE = "the newest picture between the agent step and the next one, or before"
LEARNT = "likeness.safetensors"
# Of the encoder, as the importer writes them.
ENCODER_FILES = (
    *(WEIGHTS, "config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"),
    *("added_tokens.json", "chat_template.jinja"),
)
OBJECTIVES = ("bradley_terry", "plackett_luce")
_MANIFEST = "touchstone.json"
_CACHE_BYTES = 2**29


def renderer(recipe: Recipe, examples: Any = ()) -> NewestPictureRenderer:
    folder = decoder_folder(recipe.decoder)
    return _renderer(_manifest(folder)["encoder"], recipe.max_tokens, dual_tokenizer(folder))


def build(recipe: Recipe, examples: Any, like: Any, device: str, names: Names) -> GoalLikeness:
    """Raises RewardError for an objective or a key that means nothing to it."""
    if recipe.objective not in OBJECTIVES:
        raise RewardError(
            "a model of goal likeness learns from comparisons and rankings: use the objective "
            f"{' or '.join(map(repr, OBJECTIVES))}.",
            pointer="/objective",
        )
    if recipe.heads_only or recipe.base_weights == "nf4" or recipe.gradient_checkpointing:
        raise RewardError(
            "the encoders of a model of goal likeness stay as they are, and it has no heads: leave heads_only, "
            "base_weights and gradient_checkpointing out.",
            pointer="/heads_only" if recipe.heads_only else "/base_weights",
        )
    folder = decoder_folder(recipe.decoder)
    manifest = _manifest(folder)
    encoder = (
        like.encoder if isinstance(like, GoalLikeness) else _encoder(folder, manifest, Placement(device))
    )
    texts = GoalTexts.parse(manifest["likeness"])
    reads = _renderer(manifest["encoder"], recipe.max_tokens, encoder.tokenizer)
    found = GoalLikeness(encoder, reads, texts, rank=recipe.lora_rank)
    found.embedded = ChunkCache(_CACHE_BYTES)
    return found.to(device)


def heads(recipe: Recipe, width: int, names: Names) -> StateHeadsConfig:
    return StateHeadsConfig(width=width, ensemble=1, inner=0)


def save(backbone: GoalLikeness, heads: Heads, folder: Path, recipe: Recipe) -> dict[str, Any]:
    source = decoder_folder(recipe.decoder)
    for name in ENCODER_FILES:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)
    return save_learnt(backbone, folder, _manifest(source)["encoder"])


def unlearnt(folder: Path, encoder: Mapping[str, Any], texts: GoalTexts, max_tokens: int) -> GoalLikeness:
    """As imported: of a folder with the encoder's files alone. encoder: {name, side, mean, std}."""
    dual = load_dual_encoder(folder, folder / WEIGHTS, encoder, precision="float32")
    return GoalLikeness(dual, _renderer(encoder, max_tokens, dual.tokenizer), texts)


def save_learnt(backbone: GoalLikeness, folder: Path, encoder: dict[str, Any]) -> dict[str, Any]:
    """What is not the encoder's; its part of the manifest. encoder: {name, side, mean, std}."""
    learnt = {name: tensor.detach().cpu().contiguous() for name, tensor in backbone.trained_tensors().items()}
    save_file(learnt, folder / LEARNT)
    return {
        "backbone": {
            "kind": KIND,
            "architecture": backbone.encoder.model.config.model_type,
            "lora_rank": backbone.rank,
            "alpha": round(float(backbone.clipped_alpha.detach()), 6),
        },
        "heads": {"ensemble": 1},
        "text": {"max_tokens": backbone.renderer.max_tokens, "speakers": False},
        "likeness": asdict(backbone.texts),
        "encoder": encoder,
        "step_rule": STEP_RULE,
    }


def load(
    folder: Path, manifest: dict[str, Any], placement: Placement
) -> tuple[GoalLikeness, HeadsConfig, dict[str, Any]]:
    encoder = _encoder(folder, manifest, placement)
    found = GoalLikeness(
        encoder,
        _renderer(manifest["encoder"], manifest["text"]["max_tokens"], encoder.tokenizer),
        GoalTexts.parse(manifest["likeness"]),
        rank=manifest["backbone"]["lora_rank"],
    )
    learnt = load_file(folder / LEARNT)
    if learnt.keys() != found.trained_tensors().keys():
        raise ValueError(f"{LEARNT} holds {', '.join(sorted(learnt))}")
    found.load_state_dict(learnt, strict=False)
    return found, StateHeadsConfig(width=1, ensemble=1, inner=0), {}


def _encoder(folder: Path, manifest: dict[str, Any], placement: Placement) -> DualEncoder:
    found = load_dual_encoder(folder, folder / WEIGHTS, manifest["encoder"], precision=placement.precision)
    return found.to(placement.device)


def _renderer(pixels: Mapping[str, Any], max_tokens: int, tokenizer: Any) -> NewestPictureRenderer:
    return NewestPictureRenderer(PictureReading(pixels["side"], pixels["name"]), max_tokens, tokenizer)


def _manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
    return found
