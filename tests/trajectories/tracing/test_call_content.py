"""Answers of models as frameworks log them in the `output` of Langfuse: a call, a content or a choice as JSON text."""

import json
from typing import Any

import pytest

from apps.trajectories.formats.tracing.call_content import answer_messages, asked_messages

_CALLS = [{"toolCallId": "c1", "toolName": "weather", "input": '{"city": "Oslo"}'}]
_PARTS = {"role": "model", "parts": [{"function_call": {"name": "weather", "args": {"city": "Oslo"}}}]}
_CHOICE = {"index": 0, "message": {"role": "assistant", "content": "Cold."}, "finish_reason": "stop"}
_KOOG = [
    {
        "role": "assistant",
        "content": json.dumps(
            [{"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}}]
        ),
    }
    for name in ("hello", "bye")
]


def _names(messages: list[dict[str, Any]]) -> list[str]:
    return [call["function"]["name"] for message in messages for call in message.get("tool_calls") or ()]


@pytest.mark.parametrize(
    "answer", [_CALLS, {"content": _PARTS, "finish_reason": "STOP"}], ids=["Vercel AI SDK", "Google ADK"]
)
@pytest.mark.parametrize("sent", [json.dumps, lambda answer: answer], ids=["text", "object"])
def test_an_answer_that_is_a_call_is_one(answer: Any, sent: Any) -> None:
    (message,) = answer_messages(sent(answer))
    assert message["role"] == "assistant" and _names([message]) == ["weather"] and not message.get("content")


def test_a_choice_as_text_is_its_message() -> None:
    assert [message["content"] for message in answer_messages(json.dumps(_CHOICE))] == ["Cold."]


def test_all_messages_of_one_answer_are_read() -> None:
    assert _names(answer_messages(json.dumps(_KOOG))) == ["hello", "bye"]


def test_a_prompt_in_an_object_is_the_prompt() -> None:
    assert asked_messages('{"prompt": "How warm is it?"}') == [{"role": "user", "content": "How warm is it?"}]


def test_other_json_stays_text() -> None:
    text = '{"city": "Oslo", "content": "warm"}'
    assert answer_messages(text) == [{"role": "assistant", "content": text}]
