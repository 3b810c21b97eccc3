"""The files of an imported gated decoder: the published model's tensors by their names."""

from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from transformers import AutoConfig, AutoTokenizer

from workers.models.backbones.base import Placement
from workers.models.backbones.decoder import empty_base
from workers.models.backbones.gated_decoder import GatedDecoder, GatingShape
from workers.models.files import WEIGHTS, load_heads
from workers.models.heads import HeadsConfig
from workers.text import GatedConversationRenderer, ReadingRule

KIND = "gated-decoder"
BASE = "model."


def load(
    folder: Path, manifest: dict[str, Any], placement: Placement
) -> tuple[GatedDecoder, HeadsConfig, dict[str, Any]]:
    base = empty_base(AutoConfig.from_pretrained(folder, local_files_only=True), placement).eval()
    decoder = GatedDecoder(base, reads(folder, manifest), GatingShape(**manifest["gating"]))
    weights = load_file(folder / WEIGHTS)
    renamed = {
        f"base.{name.removeprefix(BASE)}" if name.startswith(BASE) else name: weights[name]
        for name in weights
    }
    decoder.load_state_dict(renamed, strict=True)
    config, head_weights = load_heads(folder, manifest["heads"])
    return decoder, config, head_weights


def reads(folder: Path, manifest: dict[str, Any]) -> GatedConversationRenderer:
    text = manifest["text"]
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    return GatedConversationRenderer(
        tokenizer, text["max_tokens"], ReadingRule.from_json(text["whole"]), text["gate"]
    )
