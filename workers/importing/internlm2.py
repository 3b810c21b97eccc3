"""InternLM2's reward models, as sequence classifiers of the Llama architecture, which they are but for their names.

Queries, keys and values are one map there, by groups: the queries that share a key, then the key, then the value. The
head reads a token of its own, put after the conversation. Their code is not run.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor
from transformers import LlamaConfig

from workers.errors import RewardError
from workers.importing.checkpoint import TOKENIZER_CONFIG, Checkpoint, TensorHeader, read_headers
from workers.importing.conversations import template_notes, template_words
from workers.importing.decoder_classifier import classifier_tensors
from workers.importing.labels import RewardOutput, heads_part
from workers.importing.recognised import Recognised
from workers.importing.tokenizers import MOST_TOKENS, copy_tokenizer, write_config
from workers.importing.weights import NamedTensor, copy_tensors, read_tensor
from workers.json_files import write_json
from workers.models.backbones.decoder import conversation_renderer
from workers.models.files import WEIGHTS
from workers.models.kinds.decoder import STEP_RULE
from workers.schema import parse_json
from workers.schema.import_options import ImportOptions
from workers.text import ReadingRule, WholeConversationRenderer

TYPE = "internlm2"
OPTIONS = ()
_OUTPUT = RewardOutput(("LABEL_0",), ((0, 1.0),))
_HEAD = "v_head.weight"
_KEPT = (
    *("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"),
    *("num_key_value_heads", "hidden_act", "max_position_embeddings", "rms_norm_eps", "rope_theta"),
    *("pad_token_id", "bos_token_id", "eos_token_id"),
)
_NAMES = {
    "attention_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attention.wo": "self_attn.o_proj",
    "feed_forward.w1": "mlp.gate_proj",
    "feed_forward.w3": "mlp.up_proj",
    "feed_forward.w2": "mlp.down_proj",
}


def recognise(checkpoint: Checkpoint, options: ImportOptions) -> Recognised | None:
    if checkpoint.architecture != "InternLM2ForRewardModel":
        return None
    config = _llama(checkpoint)
    checkpoint.require_tensors(internlm2_shapes(config))
    max_tokens = options.max_tokens or min(MOST_TOKENS, config.max_position_embeddings)
    with _text_folder(checkpoint) as folder:
        renderer = conversation_renderer(folder, max_tokens=max_tokens, rule=_rule(checkpoint))
    assert isinstance(renderer, WholeConversationRenderer)
    number = _reward_token(checkpoint)
    token = renderer.tokenizer.convert_ids_to_tokens(number) or f"the token {number}"
    return Recognised(
        type=TYPE,
        architecture=checkpoint.architecture,
        because=f"config.json names {checkpoint.architecture}, and the weights are all of its tensors, {_HEAD} too",
        labels=_OUTPUT.names,
        reward=_OUTPUT.words,
        template=template_words(checkpoint),
        reads=f"at {token}, put after each agent step for that reading",
        parameters=checkpoint.parameters,
        bytes=checkpoint.bytes,
        max_tokens=max_tokens,
        licence=checkpoint.licence,
        notes=(
            "Its own code is not run: the weights are renamed to those of a LlamaForSequenceClassification.",
            *template_notes(checkpoint, renderer),
        ),
    )


def convert(
    checkpoint: Checkpoint, found: Recognised, folder: Path, options: ImportOptions
) -> dict[str, Any]:
    config = _llama(checkpoint)
    with tempfile.TemporaryDirectory(prefix="split-", dir=folder.parent) as scratch:
        copy_tensors(list(_renamed(checkpoint, config, Path(scratch))), folder / WEIGHTS)
    _write_text(checkpoint, folder)
    return {
        "backbone": {"kind": "decoder", "architecture": "llama"},
        "heads": heads_part(_OUTPUT, config.hidden_size),
        "text": {"max_tokens": found.max_tokens, "speakers": False, "whole": _rule(checkpoint).as_json()},
        "step_rule": STEP_RULE,
        "objective": "bradley_terry",
        "aggregation": "value",
        "reward_from": "scalar",
        "criteria": {},
    }


def _renamed(checkpoint: Checkpoint, config: LlamaConfig, scratch: Path) -> Iterator[NamedTensor]:
    tensors = checkpoint.tensors
    yield NamedTensor("model.embed_tokens.weight", tensors["model.tok_embeddings.weight"])
    yield NamedTensor("model.norm.weight", tensors["model.norm.weight"])
    yield NamedTensor("score.weight", tensors[_HEAD])
    for layer in range(config.num_hidden_layers):
        prefix = f"model.layers.{layer}."
        for theirs, ours in _NAMES.items():
            yield NamedTensor(f"{prefix}{ours}.weight", tensors[f"{prefix}{theirs}.weight"])
        for name, header in _split(
            tensors[f"{prefix}attention.wqkv.weight"], config, scratch / f"{layer}.safetensors"
        ):
            yield NamedTensor(f"{prefix}self_attn.{name}_proj.weight", header)


def _split(header: TensorHeader, config: LlamaConfig, path: Path) -> list[tuple[str, TensorHeader]]:
    """Queries, keys and values of a layer, written to a file."""
    query, key, value = split_groups(
        read_tensor(header), config.num_attention_heads, config.num_key_value_heads
    )
    save_file({"q": query, "k": key, "v": value}, path)
    return [(tensor.name, tensor) for tensor in read_headers(path)]


def split_groups(weight: Tensor, heads: int, groups: int) -> tuple[Tensor, Tensor, Tensor]:
    """[(heads + 2 groups) * size, width] -> [heads * size, width], [groups * size, width] twice."""
    width = weight.shape[1]
    parts = weight.view(groups, heads // groups + 2, -1, width)
    query, key, value = parts[:, :-2], parts[:, -2], parts[:, -1]
    return (
        query.reshape(-1, width).contiguous(),
        key.reshape(-1, width).contiguous(),
        value.reshape(-1, width).contiguous(),
    )


def _llama(checkpoint: Checkpoint) -> LlamaConfig:
    if checkpoint.config.get("bias"):
        raise RewardError(
            f"{checkpoint.folder.name} has maps with a bias, which is not known of this architecture."
        )
    kept = {key: checkpoint.config[key] for key in _KEPT if key in checkpoint.config}
    # Their dynamic scaling of positions begins beyond max_position_embeddings, where nothing is read.
    return LlamaConfig(
        **kept, num_labels=1, tie_word_embeddings=False, architectures=["LlamaForSequenceClassification"]
    )


def internlm2_shapes(config: LlamaConfig) -> dict[str, tuple[int, ...]]:
    """By their names, the shapes of the tensors of a model of this shape."""
    shapes = classifier_tensors(config)
    found = {
        "model.tok_embeddings.weight": shapes["model.embed_tokens.weight"],
        "model.norm.weight": shapes["model.norm.weight"],
        _HEAD: shapes["score.weight"],
    }
    for layer in range(config.num_hidden_layers):
        prefix = f"model.layers.{layer}."
        found |= {
            f"{prefix}{theirs}.weight": shapes[f"{prefix}{ours}.weight"] for theirs, ours in _NAMES.items()
        }
        query, key = (shapes[f"{prefix}self_attn.{name}_proj.weight"] for name in "qk")
        found[f"{prefix}attention.wqkv.weight"] = (query[0] + 2 * key[0], query[1])
    return found


def _reward_token(checkpoint: Checkpoint) -> int:
    token = checkpoint.config.get("reward_token_id")
    if not isinstance(token, int):
        raise RewardError(
            f"config.json of {checkpoint.folder.name} names no reward_token_id, at which it is read."
        )
    return token


def _rule(checkpoint: Checkpoint) -> ReadingRule:
    return ReadingRule(appended=(_reward_token(checkpoint),))


@contextmanager
def _text_folder(checkpoint: Checkpoint) -> Iterator[Path]:
    """Its configuration and tokenizer as transformers reads them without its code."""
    with tempfile.TemporaryDirectory(prefix="internlm2-") as scratch:
        _write_text(checkpoint, Path(scratch))
        yield Path(scratch)


def _write_text(checkpoint: Checkpoint, folder: Path) -> None:
    checkpoint.require_tokenizer()
    copy_tokenizer(checkpoint, folder)
    path = folder / TOKENIZER_CONFIG
    write_json(path, parse_json(path.read_bytes()) | {"tokenizer_class": "PreTrainedTokenizerFast"})
    write_config(_llama(checkpoint).to_dict(), folder)
