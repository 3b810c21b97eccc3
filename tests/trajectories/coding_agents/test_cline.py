"""Cline and Roo Code: a published session by its own blocks, and histories in the shape of their writers."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.trajectories.coding_agents.examples import CLINE
from tests.trajectories.logs import ReadLog, read_document, sources, step_counts

SHOWN: list[dict[str, Any]] = [
    {"ts": 1, "type": "say", "say": "text", "text": "List the files."},
    {"ts": 2, "type": "say", "say": "api_req_started", "text": '{"tokensIn": 5, "cost": 0.1}'},
    {"ts": 3, "type": "say", "say": "reasoning", "text": "Hm."},
    {"ts": 4, "type": "ask", "ask": "command", "text": "ls"},
    {"ts": 5, "type": "say", "say": "command_output", "text": "a.py"},
    {"ts": 6, "type": "say", "say": "tool", "text": '{"tool": "readFile", "path": "a.py"}'},
    {"ts": 7, "type": "say", "say": "completion_result", "text": "One file."},
]


def test_the_published_session_has_what_its_blocks_have(shared_data: Path) -> None:
    path = shared_data / "wild/anthropic-messages__session.messages.json"
    document = json.loads(path.read_text())
    read = ReadLog(path.read_bytes())
    found = read.only
    blocks = Counter(block["type"] for message in document["messages"] for block in message["content"])
    counts = step_counts(found)
    assert (read.format, found.id, found.agent) == ("cline", document["sessionId"], "Cline")
    assert (counts["calls"], counts["tied"]) == (blocks["tool_use"], blocks["tool_result"]) == (11, 11)
    assert counts["agent"] == sum(message["role"] == "assistant" for message in document["messages"])
    stated = [message["metrics"] for message in document["messages"] if "metrics" in message]
    assert found.metadata["usage"]["output_tokens"] == sum(each["outputTokens"] for each in stated)
    assert abs(found.metadata["cost"] - sum(each["cost"] for each in stated)) < 1e-9
    assert found.steps[0].text == document["system_prompt"]


def test_calls_written_as_text_have_their_results() -> None:
    read = read_document(CLINE)
    found = read.only
    assert (read.format, sources(found), found.task.instruction) == ("cline", "uaa", "List the files.")
    (call,) = found.steps[1].tool_calls
    assert (call.name, call.arguments, found.steps[1].text) == ("list_files", {"path": "src"}, "I look.")
    assert "a.py" in (found.steps[1].observation[0].content[0].text or "")
    assert found.metadata["cost"] == 0.25 and found.metadata["model"] == "claude-sonnet-4-5"


def test_what_was_shown_is_read() -> None:
    found = read_document(SHOWN).only
    assert sources(found) == "uaaaa" and found.steps[1].reasoning == "Hm."
    assert [call.name for step in found.steps for call in step.tool_calls] == ["execute_command", "readFile"]
    assert found.steps[2].observation[0].content[0].text == "a.py"
