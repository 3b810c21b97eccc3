"""One conversation in the shapes of many APIs gives the same steps."""

import json
from pathlib import Path
from typing import Any

import pytest

from workers.schema import Step, from_messages
from workers.schema.message_shapes import is_plain

CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "Where is it?"},
    {
        "role": "assistant",
        "content": "I look.",
        "reasoning_content": "Hm.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look", "arguments": {"order": 7}}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "in Ulm"},
    {"role": "assistant", "content": "In Ulm."},
]
CALL = {"name": "look", "args": {"order": 7}, "id": "c1", "type": "tool_call"}
SHAPES: dict[str, list[Any]] = {
    "OpenAI, other spellings": [
        {"role": "Human", "content": "Where is it?"},
        {
            "role": "ai",
            "content": "I look.",
            "thinking": "Hm.",
            "tool_calls": [{"id": "c1", "name": "look", "arguments": {"order": 7}}],
        },
        {"role": "ipython", "content": "in Ulm"},
        {"role": "model", "content": "In Ulm."},
    ],
    "Anthropic": [
        {"role": "user", "content": "Where is it?"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "c1", "name": "look", "input": {"order": 7}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "in Ulm"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "In Ulm."}]},
    ],
    "Responses": [
        {"role": "user", "content": "Where is it?", "type": "message"},
        {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "id": "fc", "call_id": "c1", "name": "look", "arguments": '{"order": 7}'},
        {"type": "function_call_output", "call_id": "c1", "output": "in Ulm"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "In Ulm."}]},
    ],
    "Gemini": [
        {"role": "user", "parts": [{"text": "Where is it?"}]},
        {
            "role": "model",
            "parts": [
                {"text": "Hm.", "thought": True},
                {"text": "I look."},
                {"functionCall": {"id": "c1", "name": "look", "args": {"order": 7}}},
            ],
        },
        {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "look", "response": "in Ulm"}}]},
        {"role": "model", "parts": [{"text": "In Ulm."}]},
    ],
    "OpenTelemetry": [
        {"role": "user", "parts": [{"type": "text", "content": "Where is it?"}]},
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "Hm."},
                {"type": "text", "content": "I look."},
                {"type": "tool_call", "id": "c1", "name": "look", "arguments": {"order": 7}},
            ],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "in Ulm"}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "In Ulm."}]},
    ],
    "LangChain": [
        {"type": "human", "data": {"content": "Where is it?", "type": "human"}},
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "messages", "AIMessage"],
            "kwargs": {
                "type": "ai",
                "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "I look."}],
                "tool_calls": [CALL],
            },
        },
        {"type": "tool", "content": "in Ulm", "tool_call_id": "c1", "additional_kwargs": {}},
        {"type": "ai", "content": "In Ulm.", "usage_metadata": None},
    ],
}


def summary(steps: tuple[Step, ...]) -> list[Any]:
    """What a model reads."""
    return [
        (
            step.source,
            step.text,
            step.reasoning,
            [(call.id, call.name, call.arguments) for call in step.tool_calls],
            [(result.call_id, [part.text for part in result.content]) for result in step.observation],
        )
        for step in steps
    ]


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_gives_the_same_steps(name: str) -> None:
    assert summary(from_messages(SHAPES[name])) == summary(from_messages(CHAT))


def test_sharegpt() -> None:
    steps = from_messages(
        [
            {"from": "human", "value": "Where is it?"},
            {"from": "function_call", "value": '{"name": "look", "arguments": {"order": 7}}'},
            {"from": "observation", "value": "in Ulm"},
            {"from": "gpt", "value": "In Ulm."},
        ]
    )
    assert [(step.source, step.text) for step in steps] == [
        ("user", "Where is it?"),
        ("agent", ""),
        ("agent", "In Ulm."),
    ]
    assert steps[1].tool_calls[0].arguments == {"order": 7}
    assert steps[1].observation[0].content[0].text == "in Ulm"


@pytest.mark.parametrize(
    ("part", "type", "source"),
    [
        ({"type": "input_image", "image_url": "https://x/a.png"}, "image", "https://x/a.png"),
        ({"type": "image", "image": "https://x/a.png"}, "image", "https://x/a.png"),
        ({"type": "image"}, "image", None),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            "image",
            "data:image/png;base64,AAAA",
        ),
        ({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}, "image", "data:image/png;base64,AAAA"),
        ({"fileData": {"mimeType": "application/pdf", "fileUri": "gs://x/a.pdf"}}, "file", "gs://x/a.pdf"),
        (
            {"type": "uri", "modality": "image", "mime_type": "image/png", "uri": "https://x/a"},
            "image",
            "https://x/a",
        ),
        (
            {"type": "blob", "mime_type": "image/png", "content": "AAAA"},
            "image",
            "data:image/png;base64,AAAA",
        ),
        (
            {"type": "document", "source": {"type": "url", "url": "https://x/a.pdf"}},
            "file",
            "https://x/a.pdf",
        ),
        ({"type": "video_url", "video_url": {"url": "https://x/a.mp4"}}, "video", "https://x/a.mp4"),
    ],
)
def test_media_by_reference(part: dict[str, Any], type: str, source: str | None) -> None:
    (step,) = from_messages([{"role": "user", "content": [{"type": "text", "text": "Look:"}, part]}])
    assert (step.message[1].type, step.message[1].source) == (type, source)
    assert step.message[0].text == "Look:"
    assert "AAAA" not in json.dumps(step.message[1].extra)  # the bytes once, so that they are stored once


@pytest.mark.parametrize(
    ("arguments", "read"), [(None, ""), ([1, 2], "[1, 2]"), ("", ""), ({}, {}), ('"{}"', '"{}"')]
)
def test_arguments_of_every_kind(arguments: Any, read: Any) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": arguments}}
    (step,) = from_messages([{"role": "assistant", "tool_calls": [call]}])
    assert step.tool_calls[0].arguments == read


def test_a_result_that_is_no_text_is_json_text() -> None:
    steps = from_messages(
        [
            {"role": "assistant", "tool_calls": [{"id": "c1", "name": "f", "arguments": {}}]},
            {"role": "tool", "tool_call_id": "c1", "content": {"ok": True}},
            {"role": "tool", "tool_call_id": "c1", "content": [{"row": 1}]},
            {"role": "tool", "tool_call_id": "c1", "content": 3},
        ]
    )
    texts = [result.content[0].text for result in steps[0].observation]
    assert texts == ['{"ok": true}', '[{"row": 1}]', "3"]


def test_a_refusal_is_text() -> None:
    (step,) = from_messages([{"role": "assistant", "content": None, "refusal": "I cannot."}])
    assert step.text == "I cannot."


def test_text_after_a_result_in_one_message_stays_after_it() -> None:
    content = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "Ulm"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "s1",
            "content": [{"type": "web_search_result", "url": "u"}],
        },
        {"type": "text", "text": "Found."},
    ]
    steps = from_messages([{"role": "user", "content": "Search."}, {"role": "assistant", "content": content}])
    assert [(step.source, step.text, len(step.observation)) for step in steps[1:]] == [
        ("agent", "", 1),
        ("agent", "Found.", 0),
    ]


def test_plain_messages_are_left_as_they_are() -> None:
    assert all(map(is_plain, CHAT))
    assert not any(is_plain(message) for message in SHAPES["Gemini"])


@pytest.mark.parametrize(
    ("name", "key", "sources"),
    [
        ("langchain-messages__messages_to_dict.json", None, "system user agent agent"),
        ("langchain-messages__dumpd.json", None, "system user agent agent"),
        ("langgraph-state__state_model_dump.json", "messages", "system user agent agent"),
        ("openai-agents__to_input_list.json", None, "user agent agent"),
    ],
)
def test_messages_that_libraries_dumped(shared_data: Path, name: str, key: str | None, sources: str) -> None:
    document = json.loads((shared_data / "wild" / name).read_text())
    steps = from_messages(document[key] if key else document)
    assert [step.source for step in steps] == sources.split()
    assert sum(len(step.observation) for step in steps) == 1
    assert sum(len(step.tool_calls) for step in steps) == 1


def test_a_session_of_anthropics_blocks(shared_data: Path) -> None:
    document = json.loads((shared_data / "wild/anthropic-messages__session.messages.json").read_text())
    blocks = [block["type"] for message in document["messages"] for block in message["content"]]
    steps = from_messages(document["messages"])
    assert sum(len(step.tool_calls) for step in steps) == blocks.count("tool_use") == 11
    assert sum(len(step.observation) for step in steps) == blocks.count("tool_result") == 11
    assert not any(step.extra.get("orphan") for step in steps)


def test_blocks_that_hold_what_they_are_under_value_are_read():
    call = '{"name": "look", "arguments": {"at": "sky"}}'
    messages = [
        {
            "role": "user",
            "content": [{"type": "text", "value": "Look."}, {"type": "image_url", "value": "a.png"}],
        },
        {
            "role": "assistant",
            "content": [{"type": "reasoning", "value": "Up?"}, {"type": "tool_call", "value": call}],
        },
        {"role": "tool", "content": [{"type": "text", "value": "blue"}]},
        {"role": "assistant", "content": [{"type": "text", "value": "It is blue."}], "loss_weight": 1.0},
    ]
    first, second, third = from_messages(messages)
    assert [part.type for part in first.message] == ["text", "image"] and first.message[1].source == "a.png"
    assert (second.reasoning, second.tool_calls[0].arguments) == ("Up?", {"at": "sky"})
    assert second.observation[0].content[0].text == "blue"
    assert third.text == "It is blue." and third.extra["message"] == {"loss_weight": 1.0}


def test_calls_that_langchain_keeps_as_additional_are_read():
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"q": "x"}'}}
    messages = [
        {"role": "user", "content": "Find x."},
        {"role": "assistant", "content": "", "additional_kwargs": {"tool_calls": [call], "refusal": None}},
        {"role": "toolResult", "toolCallId": "c1", "content": "x is here"},
    ]
    _, agent = from_messages(messages)
    assert agent.tool_calls[0].name == "find"
    assert agent.observation[0].call_id == "c1"
