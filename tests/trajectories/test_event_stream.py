"""Answers of model APIs as they were sent, as server-sent events (WHATWG, HTML, 9.2)."""

import json
from typing import Any

import pytest

from tests.trajectories.logs import ReadLog, sources
from tests.trajectories.reading import read_bytes

_CHUNK: dict[str, Any] = {"id": "c1", "object": "chat.completion.chunk", "model": "m"}
CHAT = [
    _CHUNK | {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hel"}}]},
    _CHUNK | {"choices": [{"index": 0, "delta": {"content": "lo"}, "finish_reason": "stop"}]},
]
ANTHROPIC = [
    {"type": "message_start", "message": {"id": "m", "role": "assistant", "model": "claude", "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_stop"},
]
RESPONSES = [
    {"type": "response.created", "response": {"id": "r", "object": "response", "output": []}},
    {
        "type": "response.completed",
        "response": {
            "id": "r",
            "object": "response",
            "output": [
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "Hello"}],
                }
            ],
        },
    },
]


def _sent(events: list[Any], *, blank: str = "\n\n", named: bool = True, end: str = "") -> bytes:
    lines = [
        (f"event: {event.get('type', 'chunk')}\n" if named else "") + f"data: {json.dumps(event)}{blank}"
        for event in events
    ]
    return (": keep-alive\n\n" + "".join(lines) + end).encode()


@pytest.mark.parametrize("events", [CHAT, ANTHROPIC, RESPONSES])
@pytest.mark.parametrize(
    "sent",
    [
        lambda events: _sent(events),
        lambda events: _sent(events, blank="\r\n\r\n", end="data: [DONE]\n\n"),
        lambda events: _sent(events, blank="\n", named=False, end="data: [DONE]"),
    ],
)
def test_a_stream_is_the_answer(events: list[Any], sent: Any) -> None:
    read = ReadLog(sent(events))
    assert read.format == "model-stream"
    assert sources(read.only) == "a" and read.only.steps[0].text == "Hello"


def test_several_data_lines_are_one_event_and_two_streams_are_two_answers() -> None:
    pretty = "".join(
        "data: " + json.dumps(event, indent=2).replace("\n", "\ndata: ") + "\n\n" for event in ANTHROPIC
    )
    found, refused, _ = read_bytes((pretty + pretty.replace('"id": "m"', '"id": "n"')).encode())
    assert not refused and [each.steps[0].text for each in found] == ["Hello", "Hello"]


def test_a_broken_event_is_named_with_its_line() -> None:
    _, refused, _ = read_bytes(b'data: {"type": "message_start"\n\ndata: [DONE]\n\n')
    assert len(refused) == 1 and "not valid JSON" in refused[0].message
