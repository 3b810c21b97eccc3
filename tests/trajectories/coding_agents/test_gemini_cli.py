"""Gemini CLI: documents in the shape of its writers (ConversationRecord and JsonStreamEvent of packages/core)."""

from typing import Any

from tests.trajectories.coding_agents.examples import GEMINI_CLI
from tests.trajectories.logs import read_document, read_lines, sources

STREAM: list[dict[str, Any]] = [
    {"type": "init", "timestamp": "t", "session_id": "g2", "model": "gemini-2.5-pro"},
    {"type": "message", "timestamp": "t", "role": "user", "content": "List."},
    {"type": "message", "timestamp": "t", "role": "assistant", "content": "I ", "delta": True},
    {"type": "message", "timestamp": "t", "role": "assistant", "content": "look.", "delta": True},
    {"type": "tool_use", "timestamp": "t", "tool_name": "ls", "tool_id": "c1", "parameters": {"path": "."}},
    {"type": "tool_result", "timestamp": "t", "tool_id": "c1", "status": "success", "output": "a.py"},
    {"type": "message", "timestamp": "t", "role": "assistant", "content": "One.", "delta": True},
    {
        "type": "result",
        "timestamp": "t",
        "status": "success",
        "stats": {"input_tokens": 7, "output_tokens": 2, "duration_ms": 1500},
    },
]


def test_a_chat_has_calls_results_thoughts_and_tokens() -> None:
    read = read_document(GEMINI_CLI)
    found = read.only
    assert (read.format, found.id, found.agent, sources(found)) == ("gemini-cli", "g1", "Gemini CLI", "uaa")
    step = found.steps[1]
    assert step.reasoning == "Plan\nHm." and step.tool_calls[0].arguments == {"command": "ls"}
    assert step.observation[0].content[0].text == "a.py" and step.observation[0].call_id == "c1"
    assert step.metrics == {"input": 5, "output": 2, "total": 7}
    assert found.metadata["usage"] == {"input_tokens": 14, "output_tokens": 5}
    assert found.metadata["model"] == "gemini-2.5-pro" and found.task.instruction == "List the files."


def test_a_chat_of_lines_is_read_with_its_newest_messages() -> None:
    around = {key: value for key, value in GEMINI_CLI.items() if key != "messages"}
    first, second, third = GEMINI_CLI["messages"]
    begun = second | {"toolCalls": []}
    found = read_lines([around, first, begun, third, second, {"$set": {"lastUpdated": "t9"}}]).only
    assert sources(found) == "uaa" and len(found.steps[1].observation) == 1
    rewound = read_lines([around, first, second, third, {"$rewindTo": "3"}]).only
    assert sources(rewound) == "ua"


def test_a_stream_is_read_and_its_pieces_are_one_message() -> None:
    found = read_lines(STREAM).only
    assert [step.text for step in found.steps] == ["List.", "I look.", "", "One."]
    assert found.steps[2].observation[0].content[0].text == "a.py"
    assert (
        found.metadata["usage"] == {"input_tokens": 7, "output_tokens": 2}
        and found.metadata["seconds"] == 1.5
    )
    assert read_lines([*STREAM[:-1], STREAM[-1] | {"status": "error"}]).only.success is False


def test_a_checkpoint_has_contents_as_history() -> None:
    history = [{"role": "user", "parts": [{"text": "Hi"}]}, {"role": "model", "parts": [{"text": "Hello"}]}]
    read = read_document({"history": history, "authType": "oauth"})
    assert (read.format, sources(read.only)) == ("gemini-cli", "ua")


def test_a_log_of_prompts_is_refused_with_where_the_chat_is() -> None:
    prompts = [{"sessionId": "g", "messageId": 0, "type": "user", "message": "Hi", "timestamp": "t"}]
    assert "logs.json" in read_document(prompts).errors[0]
