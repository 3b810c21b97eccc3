"""A small decoder that knows a few answers by heart, in a folder that any server of language models can read."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM, AutoTokenizer

from benchmarks.small_decoder import CHATML, save_decoder

Messages = Sequence[Mapping[str, str]]
TEMPLATE = f"{CHATML}{{% if add_generation_prompt %}}<|im_start|>assistant\n{{% endif %}}"
_ENOUGH = 0.01  # nats a token: no other word is likely any more
_MOST = 400  # steps


def taught(folder: Path, lessons: Sequence[tuple[Messages, str]]) -> Path:
    """lessons: questions, and what is to be answered; one that is asked twice has either answer as likely."""
    texts = [
        text for asked, answer in lessons for text in (*(request["content"] for request in asked), answer)
    ]
    save_decoder(folder, texts * 30, vocabulary=600, width=64, layers=2, heads=4)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    language: Any = AutoModelForCausalLM.from_pretrained(folder)
    lines = []
    for asked, answer in lessons:
        question = tokenizer.apply_chat_template(
            list(asked), add_generation_prompt=True, tokenize=False, return_dict=False
        )
        said = [*tokenizer.encode(answer), tokenizer.eos_token_id]
        lines.append((tokenizer.encode(question), said))
    unsure = sum(math.log([asked for asked, _ in lessons].count(asked)) for asked, _ in lessons)
    _learn_by_heart(language, lines, unsure / sum(len(said) for _, said in lines))
    language.save_pretrained(folder)
    config = folder / "config.json"  # where models of the hub have it, and mlx-lm looks for it
    told = json.loads(config.read_text())
    config.write_text(json.dumps(told | {"rope_theta": told["rope_parameters"]["rope_theta"]}))
    return folder


def _learn_by_heart(language: Any, lines: Sequence[tuple[list[int], list[int]]], floor: float) -> None:
    """floor: of the loss, below which no one gets."""
    longest = max(len(question) + len(said) for question, said in lines)
    ids = torch.zeros(len(lines), longest, dtype=torch.long)
    labels = torch.full_like(ids, -100)
    for row, (question, said) in enumerate(lines):
        ids[row, : len(question) + len(said)] = torch.tensor(question + said)
        labels[row, len(question) : len(question) + len(said)] = torch.tensor(said)
    optimiser = torch.optim.AdamW(language.parameters(), lr=3e-3)
    loss = torch.tensor(float("inf"))
    for _ in range(_MOST):
        logits = language(input_ids=ids, attention_mask=(ids > 0).long()).logits
        loss = cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        if loss < floor + _ENOUGH:
            return
        optimiser.zero_grad()
        cast(Any, loss).backward()
        optimiser.step()
    raise AssertionError(f"not learnt by heart in {_MOST} steps: {float(loss):.3f} nats a token")
