"""OpenHands: its published logs and rows counted by their own events, and what its rows state."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.trajectories.coding_agents.examples import OPENHANDS, OPENHANDS_OUTPUT
from tests.trajectories.logs import ReadLog, read_document, read_lines, sources, step_counts, unread


def _expected(events: list[dict[str, Any]]) -> Counter[str]:
    """Of events before the SDK: no message but the first has no source here, and it is the user's."""
    found: Counter[str] = Counter()
    for event in events:
        kind = event.get("action")
        found["tied"] += "observation" in event
        found["user"] += kind == "message"
        found["calls"] += kind is not None and kind != "message"
    found["agent"] = found["calls"]
    return +found


def test_the_published_rows_have_what_their_events_have(shared_data: Path) -> None:
    path = shared_data / "wild/openhands-output__output.jsonl"
    read = ReadLog(path.read_bytes())
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert (read.format, read.errors, len(read.trajectories)) == ("openhands-output", [], 2)
    for row, found in zip(rows, read.trajectories, strict=True):
        assert step_counts(found) + Counter() == _expected(row["history"])
        assert found.success is row["success"] is True
        assert found.metadata["cost"] == row["metrics"]["accumulated_cost"]
        assert found.task.id == f"neubig/pr-viewer#{row['issue']['number']}"
        assert not unread(found)


def test_the_published_events_have_the_usage_of_their_responses(shared_data: Path) -> None:
    path = shared_data / "wild/openhands-events__basic.json"
    events = json.loads(path.read_text())
    found = ReadLog(path.read_bytes()).only
    assert step_counts(found) + Counter() == _expected(events)
    responses = [
        event["tool_call_metadata"]["model_response"]
        for event in events
        if event.get("action") in ("edit", "finish")
    ]
    assert found.metadata["usage"]["completion_tokens"] == sum(
        each["usage"]["completion_tokens"] for each in responses
    )
    call = found.steps[1].tool_calls[0]
    written = responses[0]["choices"][0]["message"]["tool_calls"][0]
    assert (call.id, call.arguments_text) == (written["id"], written["function"]["arguments"])


def test_the_published_events_of_the_sdk(shared_data: Path) -> None:
    path = shared_data / "wild/openhands-sdk-events__events.jsonl"
    events = [json.loads(line) for line in path.read_text().splitlines()]
    found = ReadLog(path.read_bytes()).only
    kinds = Counter(event["kind"] for event in events)
    counts = step_counts(found)
    assert counts["calls"] == kinds["ActionEvent"] == 2
    assert counts["tied"] + counts["orphans"] == kinds["ObservationEvent"] == 3
    assert counts["reasoning"] == 2 and counts["orphans"] == 1  # the log has no action of one observation
    stats = [event["value"] for event in events if event.get("key") == "stats"][-1]["usage_to_metrics"]
    usage = stats["default"]["accumulated_token_usage"]
    assert found.metadata["usage"]["input_tokens"] == usage["prompt_tokens"]
    assert found.metadata["model"] == "litellm_proxy/minimax-m2.7"


def test_a_row_states_outcome_task_cost_and_usage() -> None:
    found = read_document(OPENHANDS_OUTPUT).only
    assert (found.task.id, found.task.instruction) == ("owner__repo-1", "List the files.")
    assert (found.success, found.agent, sources(found)) == (True, "OpenHands", "uaa")
    assert (
        found.metadata["usage"] == {"input_tokens": 70, "output_tokens": 8} and found.metadata["cost"] == 0.5
    )
    assert found.steps[1].metrics == {"prompt_tokens": 7, "completion_tokens": 2}


def test_pairs_of_actions_and_observations_are_read() -> None:
    pairs = [[OPENHANDS[1], {"observation": "null", "content": ""}], [OPENHANDS[3], OPENHANDS[4]]]
    assert sources(read_document(OPENHANDS_OUTPUT | {"history": pairs}).only) == "ua"


def test_results_answer_their_cause_though_all_calls_have_one_id() -> None:
    again = json.loads(json.dumps(OPENHANDS[3:5]).replace("gen-1", "gen-2"))
    again[0]["id"], again[1]["id"], again[1]["cause"] = 13, 14, 13
    found = read_lines([*OPENHANDS[:5], *again]).only
    assert [len(step.observation) for step in found.steps] == [0, 0, 1, 1]


def test_pictures_of_the_browser_are_parts() -> None:
    png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    pixel = f"data:image/png;base64,{png}"
    seen = {
        "id": 4,
        "source": "agent",
        "cause": 3,
        "observation": "browse",
        "content": "A page",
        "extras": {"screenshot": pixel},
    }
    found = read_lines([*OPENHANDS[:4], seen]).only
    assert [part.type for part in found.steps[2].observation[0].content] == ["text", "image"]


SDK: list[dict[str, Any]] = [
    {
        "kind": "SystemPromptEvent",
        "id": "e0",
        "source": "agent",
        "system_prompt": {"type": "text", "text": "You help."},
    },
    {
        "kind": "MessageEvent",
        "id": "e1",
        "source": "user",
        "llm_message": {"role": "user", "content": [{"type": "text", "text": "List."}]},
    },
    {
        "kind": "ActionEvent",
        "id": "e2",
        "source": "agent",
        "thought": [],
        "tool_name": "terminal",
        "tool_call_id": "c1",
        "tool_call": {"id": "c1", "name": "terminal", "arguments": '{"command": "ls"}'},
        "action": {"kind": "TerminalAction", "command": "ls"},
        "llm_response_id": "r1",
    },
    {
        "kind": "AgentErrorEvent",
        "id": "e3",
        "source": "agent",
        "tool_name": "terminal",
        "tool_call_id": "c1",
        "error": "no",
    },
    {"kind": "Condensation", "id": "e4", "source": "environment", "summary": "What was said."},
    {"kind": "PauseEvent", "id": "e5", "source": "user"},
]


def test_events_of_the_sdk_are_read() -> None:
    found = read_lines(SDK).only
    assert sources(found) == "suas" and found.task.instruction == "List."
    assert found.steps[2].observation[0].content[0].text == "no"
    row = {"instance_id": "i", "history": SDK, "test_result": {"resolved": False}}
    assert read_document(row).only.success is False


@pytest.mark.parametrize("history", [[], [OPENHANDS[1]]])
def test_a_row_without_an_answer_is_refused(history: list[Any]) -> None:
    assert ReadLog(json.dumps(OPENHANDS_OUTPUT | {"history": history}).encode(), "openhands-output").errors
