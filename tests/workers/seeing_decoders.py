"""Vision-language models of a few thousand random weights, in folders as transformers writes them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForImageTextToText,
    AutoTokenizer,
    Gemma3Config,
    Gemma3Processor,
    Qwen2VLConfig,
)
from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from benchmarks.small_decoder import save_decoder

_TEXTS = ["look done good bad the page red blue hello order sent lost"]
_SHAPE: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 512,
    "initializer_range": 0.2,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "pad_token_id": 0,
}


def save_qwen_vl(folder: Path) -> Path:
    marks = {
        "start": "<|vision_start|>",
        "end": "<|vision_end|>",
        "image": "<|image_pad|>",
        "video": "<|video_pad|>",
    }
    tokenizer = _tokenizer(folder, [*marks.values()])
    ids = {name: tokenizer.convert_tokens_to_ids(mark) for name, mark in marks.items()}
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0}
    vision = {
        "depth": 1,
        "embed_dim": 32,
        "hidden_size": 32,
        "num_heads": 2,
        "mlp_ratio": 2,
        "patch_size": 14,
    }
    config = Qwen2VLConfig(
        text_config=_SHAPE | {"vocab_size": len(tokenizer), "rope_parameters": rope},
        vision_config=vision | {"spatial_merge_size": 2, "temporal_patch_size": 2, "in_channels": 3},
        image_token_id=ids["image"],
        video_token_id=ids["video"],
        vision_start_token_id=ids["start"],
        vision_end_token_id=ids["end"],
    )
    Qwen2VLImageProcessorPil(size={"shortest_edge": 28 * 28, "longest_edge": 56 * 56}).save_pretrained(folder)
    return _save(config, folder)


def save_gemma3(folder: Path) -> Path:
    _tokenizer(folder, [])
    names = {"boi_token": "<boi>", "eoi_token": "<eoi>", "image_token": "<img>"}
    tokenizer = AutoTokenizer.from_pretrained(folder, extra_special_tokens=names)
    ids = {name: tokenizer.convert_tokens_to_ids(mark) for name, mark in names.items()}
    vision = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48}
    config = Gemma3Config(
        text_config=_SHAPE | {"head_dim": 8, "vocab_size": len(tokenizer), "sliding_window": 64},
        vision_config=vision | {"image_size": 56, "patch_size": 14},
        mm_tokens_per_image=4,
        image_token_index=ids["image_token"],
        boi_token_index=ids["boi_token"],
        eoi_token_index=ids["eoi_token"],
    )
    images = Gemma3ImageProcessorPil(size={"height": 56, "width": 56})
    Gemma3Processor(image_processor=images, tokenizer=tokenizer, image_seq_length=4).save_pretrained(folder)
    return _save(config, folder)


FAMILIES: dict[str, Callable[[Path], Path]] = {"qwen2-vl": save_qwen_vl, "gemma3": save_gemma3}


def _tokenizer(folder: Path, marks: list[str]) -> Any:
    save_decoder(folder, _TEXTS * 30, vocabulary=300, width=16, layers=1, heads=2)
    for path in folder.glob("*.safetensors"):
        path.unlink()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    if marks:
        tokenizer.add_special_tokens({"additional_special_tokens": marks})
        tokenizer.save_pretrained(folder)
    return tokenizer


def _save(config: Any, folder: Path) -> Path:
    torch.manual_seed(3)
    model = AutoModelForImageTextToText.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if (
                not parameter.any() and parameter.ndim > 1
            ):  # Gemma's projector, through which nothing would come
                parameter.normal_(std=0.2)
    model.save_pretrained(folder)
    return folder
