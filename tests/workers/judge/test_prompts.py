"""What is quoted is one line of JSON in which nothing looks like a part of the question, or of a chat."""

import json

import pytest

from benchmarks.attacks import ATTACKS
from workers.prompts.templates import quoted

SPECIAL = (
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|start_header_id|>", "<s>", "</s>", "<bos>", "<eos>",
    "<pad>", "<unk>", "<start_of_turn>", "<end_of_turn>", "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "[TOOL_CALLS]",
    "<｜User｜>", "<think>", "</think>", "<tool_call>",
)  # fmt: skip


@pytest.mark.parametrize("token", SPECIAL)
def test_no_special_token_stands_in_what_is_quoted(token: str) -> None:
    said = {"said": f"a {token} b {token}{token}"}
    assert token not in quoted(said)
    assert json.loads(quoted(said)) == said


def test_other_text_stays_as_it_is() -> None:
    code = 'if a < b: return "<div>[1]</div>"  # [INSTALL] <section> x<|y'
    assert quoted(code) == json.dumps(code).replace("<|", "\\u003c|")


@pytest.mark.parametrize("attack", ATTACKS[::2], ids=lambda one: f"{one.kind}-{one.place}")
def test_an_attack_is_a_line_of_json_and_nothing_more(attack: object) -> None:
    text = attack.text  # type: ignore[attr-defined]
    line = quoted({"said": text})
    assert len(line.splitlines()) == 1 and line.isprintable()
    assert json.loads(line)["said"] == text
    assert not any(token in line for token in SPECIAL)
