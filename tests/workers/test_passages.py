"""Trajectories are split into passages that cover every step once."""

import pytest

from workers.schema import parse_item
from workers.schema.passages import MAX_PASSAGES, PASSAGE_CHARACTERS, split_passages


def trajectory(*texts: str):  # type: ignore[no-untyped-def]
    roles = ("user", "assistant")
    return parse_item(
        {"messages": [{"role": roles[index % 2], "content": text} for index, text in enumerate(texts)]}
    ).content


@pytest.mark.parametrize("size", [10, 300, 2000])
@pytest.mark.parametrize("steps", [2, 11, 700])
def test_every_step_is_in_one_passage(size: int, steps: int) -> None:
    found = split_passages(trajectory(*(f"{index} " + "x" * size for index in range(steps))))
    assert 1 <= len(found) <= MAX_PASSAGES
    covered = [step for passage in found for step in range(passage.first, passage.last + 1)]
    assert covered == list(range(steps))
    for passage in found:
        assert all(f"{step} " in passage.text for step in range(passage.first, passage.last + 1))


def test_short_steps_share_a_passage_and_calls_are_read() -> None:
    (passage,) = split_passages(trajectory("book a flight", "Which day?"))
    assert (passage.first, passage.last) == (0, 1) and len(passage.text) < PASSAGE_CHARACTERS
    call = {"id": "c", "type": "function", "function": {"name": "book", "arguments": '{"to": "Oslo"}'}}
    messages = [
        {"role": "user", "content": "book a flight"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "no seats"},
        {"role": "assistant", "content": "None left."},
    ]
    (passage,) = split_passages(parse_item({"messages": messages}).content)
    assert "Oslo" in passage.text and "no seats" in passage.text


def test_a_trajectory_without_text_has_no_passage() -> None:
    assert split_passages(trajectory("", "")) == []
