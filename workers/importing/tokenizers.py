"""The tokenizer and configuration of a checkpoint in an artifact: text files only, and nothing that names code."""

import json
import shutil
from pathlib import Path
from typing import Any

from workers.errors import RewardError
from workers.importing.checkpoint import CONFIG, COPIED, TEMPLATE, TOKENIZER_CONFIG, Checkpoint
from workers.models.backbones.decoder import read_config, text_config
from workers.models.kinds.classifier import table_length

MOST_TOKENS = 16_384  # that an imported model reads, unless it is told otherwise
_NO_LIMIT = 10**9  # what tokenizers say that have none


def copy_tokenizer(checkpoint: Checkpoint, folder: Path) -> None:
    for name in COPIED:
        if (checkpoint.folder / name).is_file():
            shutil.copyfile(checkpoint.folder / name, folder / name)
    without = ("auto_map", "chat_template", "name_or_path")
    kept = {key: value for key, value in checkpoint.tokenizer_config.items() if key not in without}
    _write(folder / TOKENIZER_CONFIG, kept)
    if template := checkpoint.chat_template:
        (folder / TEMPLATE).write_text(template, encoding="utf-8")


def write_config(config: dict[str, Any], folder: Path, **changes: Any) -> None:
    without = ("auto_map", "_name_or_path")
    _write(folder / CONFIG, {key: value for key, value in config.items() if key not in without} | changes)


def longest_input(checkpoint: Checkpoint, wanted: int) -> int:
    """Tokens: `wanted`, or what the model reads, at most MOST_TOKENS. Raises RewardError for more positions than the
    model has."""
    config = text_config(read_config(checkpoint.folder))
    table = table_length(config)
    if table is not None and wanted > table:
        raise RewardError(
            f"max_tokens = {wanted}, but {checkpoint.architecture} has positions for {table} tokens at most.",
            pointer="/options/max_tokens",
        )
    limits = [
        table,
        getattr(config, "max_position_embeddings", None),
        checkpoint.tokenizer_config.get("model_max_length"),
    ]
    known = [int(limit) for limit in limits if isinstance(limit, int | float) and 0 < limit < _NO_LIMIT]
    return wanted or min([MOST_TOKENS, *known])


def _write(path: Path, values: dict[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
