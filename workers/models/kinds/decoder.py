"""A decoder's files: those of a sequence classifier of transformers, which scores a plain scalar model the same."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES

from workers.errors import RewardError
from workers.models.backbones.appending_decoder import AppendingDecoder
from workers.models.backbones.base import Placement
from workers.models.backbones.decoder import (
    Decoder,
    conversation_renderer,
    decoder_folder,
    empty_base,
    load_base,
)
from workers.models.backbones.frozen_weights import frozen_dtype
from workers.models.files import WEIGHTS, load_heads, save_heads, tensors
from workers.models.heads import Heads, HeadsConfig
from workers.models.kinds import Names
from workers.schema import Text
from workers.schema.recipe import Recipe
from workers.text import ConversationRenderer, ReadingRule, Tokens, WholeConversationRenderer

KIND = "decoder"
ADAPTER = "adapter.safetensors"
_SCORE, _SCALAR = "score.weight", "scalar.weight"
_PROBE = "A server that computes this model is known by what it says after every word of this."
STEP_RULE = "the last token of each agent step, its observations included; V_0 at the last token before them"


def renderer(recipe: Recipe, examples: Any = ()) -> ConversationRenderer:
    folder = decoder_folder(recipe.decoder)
    rule = _imported_rule(folder)
    if rule is not None and recipe.conditioned:
        raise RewardError(
            f"{Path(recipe.decoder).name} reads whole conversations as its own code does, and no conditions; leave out "
            "`conditioned`, or name another decoder.",
            pointer="/conditioned",
        )
    return conversation_renderer(
        folder,
        max_tokens=recipe.max_tokens,
        names_speakers=rule is None,
        rule=rule,
        conditioned=recipe.conditioned,
    )


def build(recipe: Recipe, examples: Any, like: Any, device: str, names: Names) -> Decoder:
    base = load_base(
        decoder_folder(recipe.decoder),
        device=device,
        dtype=frozen_dtype(recipe, device),
        nf4=recipe.base_weights == "nf4",
    )
    decoder = decoder_of(base, renderer(recipe))
    decoder.to(device).require_exact()
    if recipe.gradient_checkpointing:
        base = decoder.base  # transformers renames it
        enable = getattr(base, "activation_checkpointing_enable", base.gradient_checkpointing_enable)
        enable({"use_reentrant": False})
    if recipe.lora_rank:
        decoder.adapt(recipe.lora_rank, recipe.lora_alpha)
    return decoder


def heads(recipe: Recipe, width: int, names: Names) -> dict[str, Any]:
    return {"inner": 0}


def save(backbone: Decoder, heads: Heads, folder: Path, recipe: Recipe) -> dict[str, Any]:
    base = backbone.merged()
    prefix = f"{base.base_model_prefix}."
    weights = {prefix + name: tensor for name, tensor in tensors(base).items()}
    # [heads, 1, width]: one label of the classifier for each head
    weights[_SCORE] = heads.state_dict()[_SCALAR].detach().cpu().squeeze(1).contiguous()
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
    tokenizer = backbone.renderer.tokenizer
    tokenizer.chat_template = backbone.renderer.template
    tokenizer.save_pretrained(folder)
    config = _as_classifier(base.config, base.dtype, heads.config.ensemble, _pad(backbone))
    config.save_pretrained(folder)
    adapter = {} if backbone.merged_adapter is None else {"adapter": _save_adapter(backbone, folder, recipe)}
    return adapter | {
        "backbone": {"kind": KIND, "architecture": base.config.model_type, "lora_rank": recipe.lora_rank},
        "heads": save_heads(heads, folder, without=(_SCALAR,)),
        "text": _text(backbone.renderer, recipe.max_tokens),
        "step_rule": STEP_RULE,
        "probe": probe(backbone, heads),
    }


def _save_adapter(backbone: Decoder, folder: Path, recipe: Recipe) -> dict[str, Any]:
    """What was merged, for who has the pretrained model already. Its part of the manifest."""
    adapter = backbone.merged_adapter
    assert adapter is not None
    save_file(adapter.tensors, folder / ADAPTER)
    return {
        "rank": adapter.rank,
        "alpha": adapter.alpha,
        "modules": [*adapter.modules],
        "base": Path(recipe.decoder).name,
        "base_weights": recipe.base_weights,
    }


def load(
    folder: Path, manifest: dict[str, Any], placement: Placement
) -> tuple[Decoder, HeadsConfig, dict[str, Any]]:
    base = empty_base(AutoConfig.from_pretrained(folder, local_files_only=True), placement).eval()
    weights = load_file(folder / WEIGHTS)
    score = weights.pop(_SCORE).unsqueeze(1)
    prefix = f"{base.base_model_prefix}."
    base.load_state_dict({name.removeprefix(prefix): tensor for name, tensor in weights.items()}, strict=True)
    config, head_weights = load_heads(folder, manifest["heads"])
    # An imported classifier of several labels has a head of its own, made of their rows.
    return decoder_of(base, reads(folder, manifest)), config, {_SCALAR: score} | head_weights


def reads(folder: Path, manifest: dict[str, Any]) -> ConversationRenderer:
    """How it reads items, without its weights."""
    text = manifest["text"]
    return conversation_renderer(
        folder,
        max_tokens=text["max_tokens"],
        names_speakers=text.get("speakers", False),
        rule=_rule(text),
        conditioned=tuple(text.get("conditioned", ())),
    )


def decoder_of(base: PreTrainedModel, renderer: ConversationRenderer) -> Decoder:
    """Of the class that reads it as its renderer says."""
    appends = isinstance(renderer, WholeConversationRenderer) and renderer.rule.appended
    return AppendingDecoder(base, renderer) if appends else Decoder(base, renderer)


def _rule(text: dict[str, Any]) -> ReadingRule | None:
    return ReadingRule.from_json(text["whole"]) if "whole" in text else None


def _imported_rule(folder: Path) -> ReadingRule | None:
    """How the model in the folder reads conversations, where it was imported: what is trained from it reads so too."""
    path = folder / "touchstone.json"
    return _rule(json.loads(path.read_text(encoding="utf-8")).get("text") or {}) if path.is_file() else None


def _text(renderer: ConversationRenderer, max_tokens: int) -> dict[str, Any]:
    whole = {"whole": renderer.rule.as_json()} if isinstance(renderer, WholeConversationRenderer) else {}
    conditioned = {"conditioned": [*renderer.conditioned]} if renderer.conditioned else {}
    return {"max_tokens": max_tokens, "speakers": renderer.names_speakers} | conditioned | whole


def probe(backbone: Decoder, heads: Heads) -> dict[str, Any]:
    """What the model says after each token of a few, by head: what a server that computes it is to say too."""
    ids = backbone.renderer.render(Text(_PROBE)).ids
    places = tuple(range(len(ids)))
    with torch.no_grad():
        states = backbone.states([Tokens(tuple(ids), places, None, False)]).flat[1:]
        values = heads.scalar(states.to(next(heads.parameters()).dtype)).squeeze(-1)
    return {"ids": [*ids], "values": values.tolist()}


def _as_classifier(
    config: PreTrainedConfig, dtype: torch.dtype, labels: int, pad: int | None
) -> PreTrainedConfig:
    new = type(config).from_dict(config.to_dict())
    new.num_labels = labels
    new.pad_token_id = pad
    new.dtype = dtype
    name = MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES.get(config.model_type)
    if name is not None:
        new.architectures = [name]
    return new


def _pad(backbone: Decoder) -> int | None:
    """Classifiers look for the last token that is no padding: it must be one that nothing scored ends with."""
    reads, tokenizer = backbone.renderer, backbone.renderer.tokenizer
    if isinstance(reads, WholeConversationRenderer) and reads.rule.skipped:
        return reads.rule.skipped[0]
    taken = {tokenizer.eos_token_id, tokenizer.bos_token_id}
    pad = tokenizer.pad_token_id
    if pad is not None and pad not in taken:
        return int(pad)
    shown = reads.closing_ids()
    spare = [id_ for id_ in tokenizer.all_special_ids if id_ not in taken | shown]
    return int(spare[0]) if spare else None
