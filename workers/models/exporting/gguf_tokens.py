"""A tokenizer of `tokenizers` in a GGUF file. llama.cpp knows how texts are split by names, so only those it has."""

import json
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, PreTrainedConfig

from workers.errors import RewardError

_NORMAL, _CONTROL, _UNUSED = 1, 3, 5  # types of tokens
_WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_SPLITS = {_WORDS + r"\p{N}" + _REST: "qwen2", _WORDS + r"\p{N}{1,3}" + _REST: "llama-bpe"}


def add_tokenizer(writer: Any, folder: Path, config: PreTrainedConfig) -> int:
    """Returns the number of tokens. Raises RewardError for a tokenizer that llama.cpp has no name for here."""
    document = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    name = _split_name(document)
    if document["model"]["type"] != "BPE" or name is None:
        raise RewardError(
            "GGUF files are written with tokenizers of the types of GPT-2, Llama 3 and Qwen, and this model has "
            "another; convert the form 'transformers' with llama.cpp's convert_hf_to_gguf.py.",
            pointer="/format",
        )
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    tokens = _tokens(document, config.vocab_size)
    merges = document["model"]["merges"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(name)
    writer.add_token_list([text for text, _ in tokens])
    writer.add_token_types([kind for _, kind in tokens])
    writer.add_token_merges([pair if isinstance(pair, str) else " ".join(pair) for pair in merges])
    for given, add in (
        (tokenizer.bos_token_id, writer.add_bos_token_id),
        (tokenizer.eos_token_id, writer.add_eos_token_id),
        (config.pad_token_id, writer.add_pad_token_id),
    ):
        if given is not None:
            add(given)
    writer.add_add_bos_token(False)  # a conversation after the chat template has it
    if isinstance(tokenizer.chat_template, str):
        writer.add_chat_template(tokenizer.chat_template)
    return len(tokens)


def _split_name(document: dict[str, Any]) -> str | None:
    first = document.get("pre_tokenizer") or {}
    parts = first.get("pretokenizers", [first])
    for part in parts:
        if part.get("type") == "Split":
            return _SPLITS.get(part["pattern"].get("Regex", ""))
    is_gpt2 = parts[0].get("type") == "ByteLevel" and parts[0].get("use_regex", True)
    return "gpt-2" if is_gpt2 else None


def _tokens(document: dict[str, Any], count: int) -> list[tuple[str, int]]:
    """Text and type by id; `count` rows of the embedding, or more where the tokenizer has more."""
    known = {number: (text, _NORMAL) for text, number in document["model"]["vocab"].items()}
    known |= {
        added["id"]: (added["content"], _CONTROL if added["special"] else _NORMAL)
        for added in document["added_tokens"]
    }
    return [known.get(number, (f"[PAD{number}]", _UNUSED)) for number in range(max(count, max(known) + 1))]
