"""The form `gguf`: one file for llama.cpp, written by its own library from the tensors of the artifact."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor
from transformers import AutoConfig, PreTrainedConfig

from workers.errors import RewardError
from workers.models.artifact import load_scorer
from workers.models.exporting import generative, gguf_tokens, snippets
from workers.models.exporting.source import ExportOptions, ExportSource, ExportUsage, reward_head
from workers.models.files import WEIGHTS

FILES = {
    "f32": "model-f32.gguf",
    "f16": "model-f16.gguf",
    "bf16": "model-bf16.gguf",
    "q8_0": "model-q8_0.gguf",
}
HEAD = "score.json"
RANKED = (
    "qwen3"  # the decoder that llama.cpp reads a ranking head of; it takes the softmax of what the head gives
)
_BLOCK = 32  # weights of q8_0 that share a scale
_CLS_OUT = "cls.output.weight"
_ROUNDING = (
    "llama.cpp rounds keys and values to 16 bits, which moves a reward by about 0.001; "
    "`-ctk f32 -ctv f32 -fa off` turns that off."
)


def write(source: ExportSource, folder: Path, options: ExportOptions) -> ExportUsage:
    """Raises RewardError without the library, and for tokenizers and position encodings it has no name for."""
    try:
        import gguf
    except ImportError:
        raise RewardError(
            "A GGUF file needs the package gguf. Run `pip install gguf` in the environment of the worker.",
            pointer="/format",
        ) from None
    config = AutoConfig.from_pretrained(source.folder, local_files_only=True)
    path = folder / FILES[options.out_type]
    writer = gguf.GGUFWriter(path, config.model_type)
    _describe(writer, config, options.out_type)
    count = gguf_tokens.add_tokenizer(writer, source.folder, config)
    head = None if source.kind == generative.KIND else reward_head(source)
    is_ranked = head is not None and config.model_type == RANKED and not head.bias
    if head is not None:
        writer.add_pooling_type(gguf.PoolingType.RANK if is_ranked else gguf.PoolingType.LAST)
    if is_ranked:
        writer.add_classifier_output_labels(["reward", "zero"])
    for name, values in _tensors(source, config, count):
        _add(writer, name, values, options.out_type)
    if is_ranked and head is not None:
        _add(writer, _CLS_OUT, torch.stack([head.weight, torch.zeros_like(head.weight)]), "f32")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    if head is None:
        return _language(source, folder, path)
    if not is_ranked:
        (folder / HEAD).write_text(
            json.dumps({"weight": head.weight.tolist(), "bias": head.bias}) + "\n", encoding="utf-8"
        )
    return ExportUsage(
        sections=[
            ("How to score", _ranking(source, path) if is_ranked else _pooled(source, path)),
            ("What differs from the model in Touchstone", snippets.left_out(source)),
        ],
        library="gguf",
        tags=["reward-model", "llama.cpp"],
        checked=_check(path, source, options.out_type),
    )


def _describe(writer: Any, config: PreTrainedConfig, out_type: str) -> None:
    import gguf

    heads = config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    rope = config.rope_parameters
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(width)
    writer.add_value_length(width)
    writer.add_rope_dimension_count(width)
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    kinds = {"f32": "ALL_F32", "f16": "MOSTLY_F16", "bf16": "MOSTLY_BF16", "q8_0": "MOSTLY_Q8_0"}
    writer.add_file_type(gguf.LlamaFileType[kinds[out_type]])
    if rope.get("rope_type", "default") == "llama3":
        writer.add_tensor("rope_freqs.weight", _llama3_factors(rope, width))
    elif rope.get("rope_type", "default") != "default":
        raise RewardError(
            f"GGUF files are written of models with plain or Llama 3 position encodings, and this one has "
            f"{rope['rope_type']!r}; convert the form 'transformers' with llama.cpp's convert_hf_to_gguf.py.",
            pointer="/format",
        )


def _llama3_factors(rope: dict[str, Any], width: int) -> Any:
    """[width / 2]: what frequencies are divided by (Llama 3.1, "Scaling RoPE")."""
    factor, low, high = rope["factor"], rope["low_freq_factor"], rope["high_freq_factor"]
    context = rope["original_max_position_embeddings"]
    found = []
    for place in range(0, width, 2):
        length = 2 * math.pi * rope["rope_theta"] ** (place / width)
        if length < context / high:
            found.append(1.0)
        elif length > context / low:
            found.append(factor)
        else:
            smooth = (context / length - low) / (high - low)
            found.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(found, dtype=np.float32)


def _tensors(source: ExportSource, config: PreTrainedConfig, tokens: int) -> Iterator[tuple[str, Tensor]]:
    """By their names in GGUF."""
    import gguf

    architecture = next(arch for arch, name in gguf.MODEL_ARCH_NAMES.items() if name == config.model_type)
    names = gguf.get_tensor_name_map(architecture, config.num_hidden_layers)
    with safe_open(source.folder / WEIGHTS, "pt") as weights:
        for name in weights.keys():  # noqa: SIM118 (no mapping)
            if name == "score.weight":
                continue
            theirs = names.get_name(name, try_suffixes=(".weight", ".bias"))
            if theirs is None:
                raise RewardError(
                    f"GGUF has no name for the tensor {name} of a {config.model_type} model; take another form.",
                    pointer="/format",
                )
            values = weights.get_tensor(name)
            if config.model_type == "llama" and name.endswith(("q_proj.weight", "k_proj.weight")):
                values = _interleaved(values, config, is_key=name.endswith("k_proj.weight"))
            if theirs in ("token_embd.weight", "output.weight") and len(values) < tokens:
                values = torch.cat([values, values.new_zeros(tokens - len(values), values.shape[1])])
            yield theirs, values


def _interleaved(values: Tensor, config: PreTrainedConfig, *, is_key: bool) -> Tensor:
    """llama.cpp turns neighbouring numbers of a Llama's heads, transformers those of the two halves."""
    heads = config.num_key_value_heads if is_key else config.num_attention_heads
    rows, columns = values.shape
    return values.view(heads, 2, rows // heads // 2, columns).transpose(1, 2).reshape(rows, columns)


def _add(writer: Any, name: str, values: Tensor, out_type: str) -> None:
    import gguf

    kind = "f32" if values.ndim == 1 else out_type
    if kind == "q8_0" and values.shape[-1] % _BLOCK:
        kind = "f16"
    quantised = {
        "f32": gguf.GGMLQuantizationType.F32,
        "f16": gguf.GGMLQuantizationType.F16,
        "bf16": gguf.GGMLQuantizationType.BF16,
        "q8_0": gguf.GGMLQuantizationType.Q8_0,
    }[kind]
    writer.add_tensor(name, gguf.quants.quantize(values.float().numpy(), quantised), raw_dtype=quantised)


def _check(path: Path, source: ExportSource, out_type: str) -> str:
    """Read by the library again: tensors are there, and the largest is what was saved but for its rounding."""
    import gguf

    reader = gguf.GGUFReader(path)
    found = next(tensor for tensor in reader.tensors if tensor.name == "token_embd.weight")
    read = torch.from_numpy(np.array(gguf.quants.dequantize(found.data, found.tensor_type)))
    with safe_open(source.folder / WEIGHTS, "pt") as weights:
        saved = weights.get_tensor("model.embed_tokens.weight").float()
    off = float((read[: len(saved)] - saved).abs().max() / saved.abs().max())
    limit = {"f32": 1e-7, "f16": 1e-3, "bf16": 1e-2, "q8_0": 1e-2}[out_type]
    if not off <= limit:
        raise RewardError(f"gguf reads other weights than were written (they differ by {off:.2g}).")
    return f"gguf's reader: {len(reader.tensors)} tensors, weights within {off:.1e} of the largest"


def _ranking(source: ExportSource, path: Path) -> str:
    return f"""```
{_command(source, path, "rank")}
```

{_ids(source)} llama.cpp takes the softmax of two numbers for Qwen3, the raw reward and 0: of the first two of the
`embedding`, `raw = log(p[0] / p[1])`. {snippets.normalisation(source)} {_ROUNDING}"""


def _pooled(source: ExportSource, path: Path) -> str:
    return f"""```
{_command(source, path, "last --embd-normalize -1")}
```

{_ids(source)} llama.cpp has no ranking head for this model: the raw reward is the product of the `embedding` with the
`weight` of `{HEAD}`, plus its `bias`. {snippets.normalisation(source)} {_ROUNDING}"""


def _ids(source: ExportSource) -> str:
    after = f", and after them {[*source.appended]}" if source.appended else ""
    return (
        "`TOKEN_IDS` are those of the conversation after the chat template, as transformers' tokenizer gives them "
        f"(`/tokenize` of llama-server does too){after}."
    )


def _command(source: ExportSource, path: Path, pooling: str) -> str:
    tokens = source.max_tokens
    return f"""llama-server -m {path.name} --embedding --pooling {pooling} -c {tokens} -ub {tokens}
curl http://localhost:8080/embedding -H 'Content-Type: application/json' \\
  -d '{{"content": [TOKEN_IDS], "embd_normalize": -1}}'"""


def _language(source: ExportSource, folder: Path, path: Path) -> ExportUsage:
    model: Any = load_scorer(source.folder)
    generative.save_prompts(model, folder)
    serving = f"`llama-server -m {path.name} -c {source.max_tokens}`, then `/v1/chat/completions` and `/completion`."
    return ExportUsage(
        sections=[("How a verdict is read", generative.reading(model)), ("Serving", serving)],
        library="gguf",
        pipeline="text-generation",
        tags=["reward-model", "llm-as-a-judge", "llama.cpp"],
        checked=_check(path, source, path.stem.removeprefix("model-")),
    )
