"""opencode: sessions in the shape of `opencode export`, and events of `opencode run --format json`."""

from typing import Any

from tests.trajectories.coding_agents.examples import OPENCODE
from tests.trajectories.logs import read_document, read_lines, sources


def test_a_session_has_calls_results_tokens_and_cost() -> None:
    read = read_document(OPENCODE)
    found = read.only
    assert (read.format, found.id, found.agent, found.agent_version) == (
        "opencode",
        "ses_1",
        "opencode",
        "1.0.1",
    )
    assert sources(found) == "uaa" and found.task.instruction == "List the files."
    call = found.steps[1]
    assert call.reasoning == "Hm." and call.tool_calls[0].arguments == {"command": "ls"}
    assert call.observation[0].content[0].text == "a.py"
    assert found.steps[2].text == "One file." and found.steps[2].metrics["output_tokens"] == 2
    assert found.metadata["cost"] == 0.25 and found.metadata["model"] == "claude-sonnet-4-5"
    assert found.metadata["usage"]["input_tokens"] == 5 and found.metadata["cwd"] == "/w"


def test_a_sub_agent_names_its_parent() -> None:
    child = OPENCODE | {"info": OPENCODE["info"] | {"id": "ses_2", "parentID": "ses_1"}}
    assert read_document(child).only.metadata["parent"] == "ses_1"


def test_events_of_a_run_are_read() -> None:
    parts = [part | {"messageID": "msg_2"} for part in OPENCODE["messages"][1]["parts"]]
    parts.append(
        {"type": "step-finish", "messageID": "msg_2", "cost": 0.5, "tokens": {"input": 1, "output": 2}}
    )
    events: list[dict[str, Any]] = [
        {"type": part["type"], "timestamp": 1, "sessionID": "ses_1", "part": part} for part in parts
    ]
    found = read_lines(events).only
    assert (found.id, sources(found), found.metadata["cost"]) == ("ses_1", "aa", 0.5)
    assert len(found.steps[0].observation) == 1


def test_invocations_of_earlier_versions_are_calls() -> None:
    made = {
        "state": "result",
        "toolCallId": "c1",
        "toolName": "bash",
        "args": {"command": "ls"},
        "result": "a.py",
    }
    messages = [
        {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "List."}]},
        {"id": "m2", "role": "assistant", "parts": [{"type": "tool-invocation", "toolInvocation": made}]},
    ]
    found = read_document({"info": {"id": "ses_1"}, "messages": messages}).only
    assert sources(found) == "ua" and found.steps[1].observation[0].call_id == "c1"
