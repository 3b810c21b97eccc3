"""Rows of SWE-smith, SWE-Gym and SWE-rebench, in the shape that their data sets have."""

import json

import pytest

from tests.trajectories.coding_agents.examples import SWE_ROW
from tests.trajectories.logs import read_document, sources, unread


@pytest.mark.parametrize("as_text", [False, True])
def test_calls_written_as_text_have_their_results(as_text: bool) -> None:
    row = SWE_ROW | {"messages": json.dumps(SWE_ROW["messages"])} if as_text else SWE_ROW
    read = read_document(row)
    found = read.only
    assert (read.format, sources(found), found.success) == ("swe-rows", "suaa", True)
    (call,) = found.steps[2].tool_calls
    assert (call.name, call.arguments, found.steps[2].text) == ("bash", {"command": "ls src"}, "I look.")
    assert found.steps[2].observation[0].content[0].text == "OBSERVATION:\na.py"
    assert (found.task.id, found.task.instruction) == (SWE_ROW["instance_id"], "Fix it.")
    assert found.id == SWE_ROW["traj_id"] and found.metadata["model"] == "claude-3-7-sonnet"
    assert not unread(found)


def test_rows_with_calls_of_the_api_keep_them() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    messages = [
        {"role": "user", "content": "Fix it."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "a.py", "tool_call_id": "c1"},
    ]
    row = {
        "instance_id": "i_0",
        "run_id": "r",
        "messages": messages,
        "test_result": {"report": {"resolved": False}},
    }
    found = read_document(row).only
    assert (sources(found), found.success) == ("ua", False) and found.steps[1].observation[0].call_id == "c1"


def test_the_answer_next_to_the_messages_is_the_last_step() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "finish", "arguments": '{"message": "ok"}'}}
    answer = {"choices": [{"message": {"role": "assistant", "content": "", "tool_calls": [call]}}]}
    found = read_document(SWE_ROW | {"response": answer}).only
    assert [made.name for made in found.steps[-1].tool_calls] == ["finish"]
    assert len(found.steps) == len(read_document(SWE_ROW).only.steps) + 1
