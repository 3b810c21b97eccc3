"""Messages whose role or content does not say what they are: of Koog, and of Langfuse's callbacks for LangChain."""

import json
from typing import Any

from workers.schema import Step, from_messages

_CALL = {"id": "c1", "type": "function", "function": {"name": "hello", "arguments": '{"name": "Bob"}'}}
_OTHER = {"tool_call_id": "c2", "name": "bye", "arguments": "{}"}
_TOOL = {
    "type": "function",
    "function": {"name": "hello", "description": "Greets.", "parameters": {"type": "object"}},
}


def _calls(steps: tuple[Step, ...]) -> list[tuple[str, str | None, list[str | None]]]:
    return [
        (call.name, call.id, [part.text for result in step.observation for part in result.content])
        for step in steps
        for call in step.tool_calls
    ]


def test_calls_that_are_json_text_have_their_results_in_order() -> None:
    messages: list[Any] = [
        {"role": "user", "content": "Greet."},
        {"role": "tool", "content": json.dumps([_CALL])},
        {"role": "tool", "content": "Hello!"},
        {"role": "assistant", "content": json.dumps([_OTHER])},
        {"role": "tool", "content": "Bye!"},
        {"role": "assistant", "content": "Done."},
    ]
    steps = from_messages(messages)
    assert _calls(steps) == [("hello", "c1", ["Hello!"]), ("bye", "c2", ["Bye!"])]
    assert [step.source for step in steps] == ["user", "agent", "agent", "agent"]


def test_other_json_stays_text() -> None:
    for text in (
        json.dumps([{"name": "hello", "arguments": {}}]),  # without an id
        json.dumps([_CALL | {"note": 1}]),
        json.dumps([{"id": "c1"}]),
        "[{not json}]",
    ):
        (step,) = from_messages([{"role": "assistant", "content": text}])
        assert step.text == text and not step.tool_calls


def test_a_result_whose_role_is_the_name_of_its_tool_is_a_result() -> None:
    called = {"role": "assistant", "content": "", "tool_calls": [_CALL]}
    steps = from_messages([called, {"role": "hello", "content": "Hello!"}])
    assert _calls(steps) == [("hello", "c1", ["Hello!"])]


def test_a_definition_of_a_tool_is_no_message() -> None:
    asked = {"role": "user", "content": "Greet."}
    for content in (_TOOL, json.dumps(_TOOL)):
        steps = from_messages(
            [asked, {"role": "tool", "content": content}, {"role": "assistant", "content": "Hi."}]
        )
        assert [step.source for step in steps] == ["user", "agent"]
