"""The files of a vision-language decoder: its base model, its tokenizer, its image processor, and the heads."""

from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from workers.errors import RewardError
from workers.models.backbones.base import Placement
from workers.models.backbones.decoder import conversation_renderer, decoder_folder
from workers.models.backbones.frozen_weights import frozen_dtype
from workers.models.backbones.vision_decoder import VisionDecoder, empty_vision_base, load_vision_base
from workers.models.backbones.vision_processor import VisionProcessor
from workers.models.files import WEIGHTS, load_heads, save_heads, tensors
from workers.models.heads import Heads, HeadsConfig
from workers.models.kinds import Names
from workers.models.kinds.decoder import STEP_RULE
from workers.schema.recipe import Recipe
from workers.text.seeing_conversations import SeeingConversationRenderer

KIND = "vision-decoder"


def renderer(recipe: Recipe, examples: Any = ()) -> SeeingConversationRenderer:
    folder = decoder_folder(recipe.decoder)
    return _renderer(folder, VisionProcessor(folder), recipe.max_tokens, recipe.conditioned, named=True)


def build(recipe: Recipe, examples: Any, like: Any, device: str, names: Names) -> VisionDecoder:
    folder = decoder_folder(recipe.decoder)
    base = load_vision_base(
        folder, device=device, dtype=frozen_dtype(recipe, device), nf4=recipe.base_weights == "nf4"
    )
    found = VisionDecoder(base, renderer(recipe), VisionProcessor(folder))
    found.to(device).require_exact()
    if recipe.gradient_checkpointing:
        found.base.gradient_checkpointing_enable({"use_reentrant": False})
    if recipe.lora_rank:
        found.adapt(recipe.lora_rank, recipe.lora_alpha)
    return found


def heads(recipe: Recipe, width: int, names: Names) -> dict[str, Any]:
    return {"inner": 0}


def save(backbone: VisionDecoder, heads: Heads, folder: Path, recipe: Recipe) -> dict[str, Any]:
    base = backbone.merged()
    save_file(tensors(base), folder / WEIGHTS, metadata={"format": "pt"})
    tokenizer = backbone.renderer.tokenizer
    tokenizer.chat_template = backbone.renderer.template
    tokenizer.save_pretrained(folder)
    base.config.save_pretrained(folder)
    backbone.processor.save(folder)
    conditioned = {"conditioned": [*backbone.renderer.conditioned]} if backbone.renderer.conditioned else {}
    text = {"max_tokens": recipe.max_tokens, "speakers": backbone.renderer.names_speakers} | conditioned
    return {
        "backbone": {
            "kind": KIND,
            "architecture": base.config.model_type,
            "lora_rank": recipe.lora_rank,
        },
        "heads": save_heads(heads, folder),
        "text": text,
        "step_rule": STEP_RULE,
    }


def load(
    folder: Path, manifest: dict[str, Any], placement: Placement
) -> tuple[VisionDecoder, HeadsConfig, dict[str, Tensor]]:
    base = empty_vision_base(folder, placement).eval()
    base.load_state_dict(load_file(folder / WEIGHTS), strict=True)
    config, weights = load_heads(folder, manifest["heads"])
    text, processor = manifest["text"], VisionProcessor(folder)
    reads = _renderer(
        folder, processor, text["max_tokens"], tuple(text.get("conditioned", ())), named=text["speakers"]
    )
    return VisionDecoder(base, reads, processor), config, weights


def _renderer(
    folder: Path, processor: VisionProcessor, max_tokens: int, conditioned: Any, *, named: bool
) -> SeeingConversationRenderer:
    plain = conversation_renderer(folder, max_tokens=max_tokens)  # the checks of a text decoder
    size = len(plain.tokenizer)
    if outside := [token for token in processor.block if token >= size]:
        raise RewardError(
            f"token {outside[0]}, which stands for a picture, is not in the tokenizer of {folder.name}; save the "
            "processor and its tokenizer with the model.",
            pointer="/decoder",
        )
    return SeeingConversationRenderer(
        plain.tokenizer,
        max_tokens,
        pictures=processor.reading,
        block=processor.block,
        names_speakers=named,
        conditioned=conditioned,
    )
