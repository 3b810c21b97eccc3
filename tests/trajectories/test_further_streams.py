"""Streams of Cohere, of Gemini's Interactions API and of Gemini's calls, in the shape of the AI SDK's recordings."""

import json
from typing import Any

from tests.trajectories.logs import read_document, read_lines, sources

COHERE: list[dict[str, Any]] = [
    {"id": "m1", "type": "message-start", "delta": {"message": {"role": "assistant", "content": []}}},
    {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "I look "}}},
    {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "it up."}}},
    {
        "type": "tool-call-start",
        "index": 0,
        "delta": {
            "message": {
                "tool_calls": {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "weather", "arguments": ""},
                }
            }
        },
    },
    {
        "type": "tool-call-delta",
        "index": 0,
        "delta": {"message": {"tool_calls": {"function": {"arguments": '{"city":'}}}},
    },
    {
        "type": "tool-call-delta",
        "index": 0,
        "delta": {"message": {"tool_calls": {"function": {"arguments": '"Oslo"}'}}}},
    },
    {"type": "content-start", "index": 1, "delta": {"message": {"content": {"type": "text", "text": ""}}}},
    {"type": "content-delta", "index": 1, "delta": {"message": {"content": {"text": "Cold"}}}},
    {"type": "content-delta", "index": 1, "delta": {"message": {"content": {"text": "."}}}},
    {
        "type": "message-end",
        "delta": {"finish_reason": "TOOL_CALL", "usage": {"tokens": {"input_tokens": 5}}},
    },
]
INTERACTION: list[dict[str, Any]] = [
    {
        "event_type": "interaction.created",
        "interaction": {"id": "i1", "object": "interaction", "model": "gemini-x"},
    },
    {
        "event_type": "step.start",
        "index": 0,
        "step": {"type": "function_call", "id": "c1", "name": "weather", "arguments": {}},
    },
    {
        "event_type": "step.delta",
        "index": 0,
        "delta": {"type": "arguments_delta", "arguments": '{"city": "Oslo"}'},
    },
    {"event_type": "step.start", "index": 1, "step": {"type": "model_output"}},
    {"event_type": "step.delta", "index": 1, "delta": {"type": "text", "text": "Col"}},
    {"event_type": "step.delta", "index": 1, "delta": {"type": "text", "text": "d."}},
    {"event_type": "interaction.completed", "interaction": {"id": "i1", "status": "completed"}},
]


def _call(found: Any) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for step in found.steps for call in step.tool_calls]


def test_a_stream_of_cohere_has_its_plan_its_call_and_its_text() -> None:
    read = read_lines(COHERE)
    found = read.only
    assert read.format == "model-stream" and (found.steps[0].reasoning, found.steps[0].text) == (
        "I look it up.",
        "Cold.",
    )
    assert _call(found) == [("weather", {"city": "Oslo"})]


def test_a_response_of_cohere_is_read_as_its_stream() -> None:
    message = {"role": "assistant", "tool_plan": "I look.", "content": [{"type": "text", "text": "Cold."}]}
    read = read_document({"id": "m1", "message": message, "finish_reason": "COMPLETE", "usage": {}})
    assert read.format == "model-response"
    assert (read.only.steps[0].reasoning, read.only.steps[0].text) == ("I look.", "Cold.")


def test_a_stream_of_interactions_has_its_steps() -> None:
    read = read_lines(INTERACTION)
    assert read.format == "model-stream" and _call(read.only) == [("weather", {"city": "Oslo"})]
    assert read.only.steps[-1].text == "Cold." and read.only.agent == "gemini-x"


def test_chunks_without_an_object_are_a_stream() -> None:
    pieces = [
        {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": each}}]}
        for each in ("Co", "ld")
    ]
    read = read_lines(pieces)
    assert (read.format, sources(read.only), read.only.steps[0].text) == ("model-stream", "a", "Cold")


def test_arguments_of_gemini_that_come_in_pieces_are_one_call() -> None:
    def piece(path: str, **value: Any) -> dict[str, Any]:
        return {"functionCall": {"partialArgs": [{"jsonPath": path} | value], "willContinue": True}}

    parts: list[dict[str, Any]] = [
        {"functionCall": {"name": "cook", "willContinue": True}},
        piece("$.items[0].name", stringValue="nood", willContinue=True),
        piece("$.items[0].name", stringValue="les"),
        piece("$.items[1].count", numberValue=2),
        piece("$.hot", boolValue=True),
        {"functionCall": {}},
        {"functionCall": {"name": "eat"}},
    ]
    read = read_lines(
        [
            {"responseId": "r", "candidates": [{"content": {"role": "model", "parts": [part]}}]}
            for part in parts
        ]
    )
    assert _call(read.only) == [
        ("cook", {"items": [{"name": "noodles"}, {"count": 2}], "hot": True}),
        ("eat", ""),
    ]


def test_a_document_that_was_encoded_twice_is_read() -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    assert sources(read_document(json.dumps({"messages": messages})).only) == "ua"
    assert read_document("only a text").errors
