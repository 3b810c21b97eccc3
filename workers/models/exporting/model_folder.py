"""Folders of transformers: configuration, tokenizer, and weights in shards, written tensor by tensor."""

import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from transformers import AutoConfig, AutoTokenizer, PreTrainedConfig, PreTrainedModel

from workers.errors import RewardError
from workers.models.exporting.source import ExportSource, RewardHead
from workers.models.files import WEIGHTS
from workers.models.transformers_loading import transformers_loading

SHARD_BYTES = 5 * 10**9
_TEXT_FILES = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"),
    *("vocab.json", "merges.txt", "added_tokens.json", "vocab.txt", "generation_config.json"),
)
SCORE = "score.weight"  # of an artifact


def artifact_tensors(source: ExportSource) -> Iterator[tuple[str, Tensor]]:
    """Of the model's weights, one after another, without its head."""
    with safe_open(source.folder / WEIGHTS, "pt") as weights:
        for name in weights.keys():  # noqa: SIM118 (no mapping)
            if name != SCORE:
                yield name, weights.get_tensor(name)


def save_tensors(tensors: Iterable[tuple[str, Tensor]], folder: Path, *, shard: int = SHARD_BYTES) -> None:
    """As save_pretrained does: one file, or shards of at most so many bytes (but of one tensor at least) and their
    index. No more than a shard is in memory."""
    parts: list[list[str]] = []
    waiting: dict[str, Tensor] = {}
    size = total = 0

    def flush() -> None:
        parts.append([*waiting])
        save_file(waiting, folder / f"part-{len(parts)}", metadata={"format": "pt"})
        waiting.clear()

    for name, tensor in tensors:
        count = tensor.numel() * tensor.element_size()
        if waiting and size + count > shard:
            flush()
            size = 0
        waiting[name] = tensor.contiguous()
        size, total = size + count, total + count
    flush()
    if len(parts) == 1:
        (folder / "part-1").rename(folder / WEIGHTS)
        return
    files = [f"model-{place:05d}-of-{len(parts):05d}.safetensors" for place in range(1, len(parts) + 1)]
    for place, file in enumerate(files, start=1):
        (folder / f"part-{place}").rename(folder / file)
    index = {
        "metadata": {"total_size": total},
        "weight_map": {name: file for file, names in zip(files, parts, strict=True) for name in names},
    }
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps(index, indent=2) + "\n")


def copy_text_files(source: ExportSource, folder: Path) -> None:
    for name in _TEXT_FILES:
        if (source.folder / name).is_file():
            shutil.copyfile(source.folder / name, folder / name)


def save_tokenizer(source: ExportSource, folder: Path, *, pad: int | None) -> Any:
    """The tokenizer with its chat template; what it fills up with is what the model takes for padding."""
    tokenizer = AutoTokenizer.from_pretrained(source.folder, local_files_only=True, trust_remote_code=False)
    if pad is not None and tokenizer.pad_token_id != pad:
        tokenizer.pad_token = tokenizer.convert_ids_to_tokens(pad)
    tokenizer.padding_side = "right"
    tokenizer.save_pretrained(folder)
    return tokenizer


def classifier_config(source: ExportSource, names: dict[str, str], *, what: str) -> PreTrainedConfig:
    """Of a model with one label. names: of classes by type of model. Raises RewardError where there is no class."""
    config: PreTrainedConfig = AutoConfig.from_pretrained(source.folder, local_files_only=True)
    name = names.get(config.model_type)
    if name is None or not hasattr(transformers, name):
        raise RewardError(
            f"transformers {transformers.__version__} has no {what} for {config.model_type} models; take the form "
            "'standalone'.",
            pointer="/format",
        )
    config.id2label, config.label2id = {0: "reward"}, {"reward": 0}
    config.problem_type = "regression"  # servers then give the number itself, not its sigmoid
    config.architectures = [name]
    return config


def classifier_tensors(
    source: ExportSource, config: PreTrainedConfig, head: RewardHead
) -> Iterator[tuple[str, Tensor]]:
    """The weights under the names that the class of the configuration reads. Raises RewardError where it reads others,
    so that no head is left to chance."""
    names = dict(class_shapes(config))
    for name, tensor in artifact_tensors(source):
        if names.pop(name, None) != tensor.shape:
            raise _other_layout(config, name)
        yield name, tensor
    for name, shape in names.items():
        if name.endswith(".weight") and shape == (1, len(head.weight)):
            yield name, head.weight.unsqueeze(0)
        elif name.endswith(".bias") and shape == (1,):
            yield name, torch.tensor([head.bias])
        else:
            raise _other_layout(config, name)
    if head.bias and not any(name.endswith(".bias") and shape == (1,) for name, shape in names.items()):
        raise _other_layout(config, "the bias of its head")


def load_back(folder: Path, kind: Any, *, what: str = "the export", **options: Any) -> PreTrainedModel:
    """What transformers' own class makes of a folder, in float32. Raises RewardError where it misses a tensor, or has
    one too many."""
    with transformers_loading():
        model, loading = kind.from_pretrained(
            folder,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
            **options,
        )
    wrong = [*loading["missing_keys"], *loading["unexpected_keys"], *loading["mismatched_keys"]]
    if wrong:
        raise RewardError(f"transformers does not read {wrong[0]} of {what} as it was written.")
    loaded: PreTrainedModel = model.eval()
    return loaded


def class_shapes(config: PreTrainedConfig) -> Iterator[tuple[str, torch.Size]]:
    kind = getattr(transformers, (config.architectures or [""])[0])
    with transformers_loading(), torch.device("meta"):
        model = kind(config)
    for name, tensor in model.state_dict().items():
        yield name, tensor.shape


def _other_layout(config: PreTrainedConfig, name: str) -> RewardError:
    return RewardError(
        f"transformers' {(config.architectures or [''])[0]} has another layout than this model ({name}); take the form "
        "'standalone'.",
        pointer="/format",
    )
