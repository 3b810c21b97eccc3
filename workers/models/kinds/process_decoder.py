"""A process reward model of another maker as files: its own checkpoint, tensors named as they were.

The manifest's part `process` says how it is read; see `workers.importing.process_models.ProcessForm`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from transformers import AutoConfig, AutoTokenizer

from workers.errors import RewardError
from workers.models.backbones.base import Placement
from workers.models.backbones.decoder import decoder_folder, empty_base, text_config
from workers.models.backbones.process_decoder import ProcessDecoder
from workers.models.files import WEIGHTS, tensors
from workers.models.heads import Heads, HeadsConfig
from workers.models.kinds import Names
from workers.models.step_heads import StepHeadsConfig
from workers.schema.recipe import Recipe
from workers.text import StepFormat, StepRenderer

KIND = "process-decoder"
STEP_TAG = "step-tag"
_MANIFEST, _CONFIG = "touchstone.json", "config.json"
_FIRST_LABELS = ("good", "neutral", "bad")


def renderer(recipe: Recipe, examples: Any = ()) -> StepRenderer:
    folder = decoder_folder(recipe.decoder)
    return step_renderer(folder, _manifest(folder)["text"] | {"max_tokens": recipe.max_tokens})


def build(recipe: Recipe, examples: Any, like: Any, device: str, names: Names) -> ProcessDecoder:
    """Of an imported model's folder, to be trained on. Raises RewardError for a form that is not trained here."""
    folder = decoder_folder(recipe.decoder)
    manifest = _manifest(folder)
    if recipe.objective != "process":
        raise RewardError(
            "a process reward model from elsewhere learns from step labels only; use objective = 'process'.",
            pointer="/objective",
        )
    if manifest["process"]["form"] == STEP_TAG:
        raise RewardError(
            "this model answers at a step tag with its LM head, which is not fine-tuned here: its head is a part of "
            "its vocabulary. Fine-tune a token classifier, or train the objective 'process' on its decoder.",
            pointer="/parent",
        )
    if recipe.base_weights == "nf4":
        raise RewardError(
            "base_weights = 'nf4' is not known to imported process reward models; leave it out.",
            pointer="/base_weights",
        )
    backbone, _, weights = load(
        folder, manifest | {"text": manifest["text"] | {"max_tokens": recipe.max_tokens}}, Placement(device)
    )
    backbone.head_weights = weights
    backbone.require_exact()
    if recipe.gradient_checkpointing:
        base = backbone.base
        enable = getattr(base, "activation_checkpointing_enable", base.gradient_checkpointing_enable)
        enable({"use_reentrant": False})
    if recipe.lora_rank:
        backbone.adapt(recipe.lora_rank, recipe.lora_alpha)
    return backbone


def heads(recipe: Recipe, width: int, names: Names) -> StepHeadsConfig:
    return step_heads_config(_manifest(decoder_folder(recipe.decoder))["process"], width)


def save(backbone: ProcessDecoder, heads: Heads, folder: Path, recipe: Recipe) -> dict[str, Any]:
    """As the checkpoint was: the same names, the parts that are not used included."""
    source = decoder_folder(recipe.decoder)
    process = backbone.process
    base = backbone.merged()
    weights = {process["prefix"] + name: tensor for name, tensor in tensors(base).items()}
    maps = heads.state_dict()
    for index, (weight, bias) in enumerate(process["head"]):
        weights[weight] = _plain(maps[f"label.maps.{index}.weight"])
        if bias:
            weights[bias] = _plain(maps[f"label.maps.{index}.bias"])
    with safe_open(source / WEIGHTS, framework="pt") as file:
        weights |= {name: file.get_tensor(name) for name in process["unused"]}
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
    config = json.loads((source / _CONFIG).read_text(encoding="utf-8"))
    config.pop("torch_dtype", None)
    config["dtype"] = str(base.dtype).removeprefix("torch.")
    (folder / _CONFIG).write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    backbone.renderer.tokenizer.save_pretrained(folder)
    return _manifest(source) | {
        "backbone": {"kind": KIND, "architecture": base.config.model_type, "lora_rank": recipe.lora_rank},
        "text": backbone.text | {"max_tokens": recipe.max_tokens},
        "heads": {"ensemble": 1, "labels": [*heads.config.labels]},
    }


def load(
    folder: Path, manifest: dict[str, Any], placement: Placement
) -> tuple[ProcessDecoder, HeadsConfig, dict[str, Any]]:
    process = manifest["process"]
    base = empty_base(AutoConfig.from_pretrained(folder, local_files_only=True), placement).eval()
    kept = {*process["unused"]}
    with safe_open(folder / WEIGHTS, framework="pt") as file:
        named = {name for names in process["head"] for name in names if name}
        weights = {name: file.get_tensor(name) for name in named}
        rest = [name for name in file.keys() if name not in kept and name.startswith(process["prefix"])]  # noqa: SIM118
        base.load_state_dict(
            {name.removeprefix(process["prefix"]): file.get_tensor(name) for name in rest}, strict=True
        )
    renderer = step_renderer(folder, manifest["text"])
    backbone = ProcessDecoder(base, renderer, process=process, text=manifest["text"])
    return backbone, step_heads_config(process, backbone.width), head_weights(process, weights)


def step_renderer(folder: Path, text: Mapping[str, Any]) -> StepRenderer:
    """Raises RewardError where the model has no room for so many tokens."""
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    config = text_config(AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False))
    longest = getattr(config, "max_position_embeddings", None)
    if longest is not None and text["max_tokens"] > longest:
        raise RewardError(
            f"max_tokens = {text['max_tokens']}, but this model reads at most {longest}.",
            pointer="/max_tokens",
        )
    return StepRenderer(tokenizer, text["max_tokens"], StepFormat(**text["steps"]))


def step_heads_config(process: Mapping[str, Any], width: int) -> StepHeadsConfig:
    classes = tuple(process["classes"])
    labels = ("good", "bad") if len(classes) == 1 else ordered_labels(classes)
    return StepHeadsConfig(
        width=width,
        ensemble=1,
        inner=0,
        labels=labels,
        classes=classes,
        layers=tuple(process["layers"]),
        bias=any(bias for _, bias in process["head"]),
    )


def ordered_labels(classes: tuple[str, ...]) -> tuple[str, ...]:
    """As the objective `process` has them: good, neutral, bad; then what else there is."""
    first = [name for name in _FIRST_LABELS if name in classes]
    return (*first, *(name for name in classes if name not in first))


def head_weights(process: Mapping[str, Any], weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Of `StepHeads`, by its names, in float32."""
    rows = process.get("rows")
    found = {}
    for index, (weight, bias) in enumerate(process["head"]):
        for name, tensor in (("weight", weight), ("bias", bias)):
            if tensor:
                whole = weights[tensor] if rows is None else weights[tensor][rows]
                found[f"label.maps.{index}.{name}"] = whole.float()
    return found


def _manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
    return {key: found[key] for key in ("process", "text", "step_rule") if key in found}


def _plain(tensor: Tensor) -> Tensor:
    return tensor.detach().to("cpu", torch.float32).contiguous()
