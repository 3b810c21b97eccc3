"""OpenAI Codex: documents in the shape of its writers (RolloutLine and ThreadEvent of codex-rs)."""

from typing import Any

from tests.trajectories.coding_agents.examples import CODEX, CODEX_EXEC, codex_event
from tests.trajectories.logs import read_document, read_lines, sources, step_counts, unread


def item(**payload: Any) -> dict[str, Any]:
    return codex_event("response_item", **payload)


def test_a_rollout_is_read_by_its_items() -> None:
    read = read_lines(CODEX)
    found = read.only
    assert (read.format, found.id, found.agent, found.agent_version) == ("codex", "r1", "Codex", "0.146.1")
    assert sources(found) == "suaa" and found.steps[1].text == "List the files."
    call = found.steps[2]
    assert (call.reasoning, call.tool_calls[0].arguments) == ("Hm.", {"command": ["ls"]})
    assert call.observation[0].call_id == "c1"
    assert [step.metrics.get("input_tokens") for step in found.steps] == [None, None, 5, 7]
    assert found.metadata["usage"] == {"input_tokens": 12} and found.metadata["model"] == "gpt-5.1-codex"
    assert not read.dropped and not unread(found)


def test_the_task_is_the_prompt_wherever_the_session_was() -> None:
    elsewhere = [*CODEX]
    elsewhere[2] = item(
        type="message", role="user", content=[{"type": "input_text", "text": "<environment_context>"}]
    )
    assert read_lines(elsewhere).only.task == read_lines(CODEX).only.task


def test_calls_of_all_kinds_have_their_results() -> None:
    found = read_lines(
        [
            *CODEX,
            item(type="custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="c2"),
            item(
                type="custom_tool_call_output", call_id="c2", output=[{"type": "input_text", "text": "Done!"}]
            ),
            item(
                type="local_shell_call",
                call_id="c3",
                status="completed",
                action={"type": "exec", "command": ["ls"]},
            ),
            item(type="function_call_output", call_id="c3", output={"content": "a.py", "success": True}),
            item(type="tool_search_call", call_id="c4", arguments={"query": "x"}),
            item(type="tool_search_output", call_id="c4", tools=[{"name": "y"}]),
            item(type="ghost_snapshot", ghost_commit={"id": "abc"}),
            codex_event("compacted", message="What was said."),
        ]
    ).only
    counts = step_counts(found)
    assert (counts["calls"], counts["tied"], counts["orphans"]) == (4, 4, 0)
    assert found.steps[-1].source == "system" and found.steps[-1].text == "What was said."
    assert any("ghost_snapshot" in str(event) for event in found.metadata["events"])


def test_sub_agents_and_forks_name_their_parent() -> None:
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "r0", "depth": 1}}}
    child = codex_event("session_meta", id="r2", source=spawned)
    assert read_lines([child, *CODEX[1:]]).only.metadata["parent"] == "r0"
    fork = codex_event("session_meta", id="r3", forked_from_id="r1")
    assert read_lines([fork, *CODEX]).only.metadata["parent"] == "r1"
    assert [each.id for each in read_lines([*CODEX, child, *CODEX[1:]]).trajectories] == ["r1", "r2"]


def test_older_rollouts_are_bare_items() -> None:
    header = {"id": "r0", "timestamp": "2025-06-01T09:00:00.000Z", "instructions": None}
    items = [event["payload"] for event in CODEX if event["type"] == "response_item"]
    assert sources(read_lines([header, {"record_type": "state"}, *items]).only) == "suaa"
    assert sources(read_document({"session": header, "items": items}).only) == "suaa"


def test_events_tell_the_run_where_there_are_no_items() -> None:
    told: list[dict[str, Any]] = [
        {"type": "agent_reasoning", "text": "Hm."},
        {"type": "exec_command_begin", "call_id": "c1", "command": ["ls"], "cwd": "/w"},
        {"type": "exec_command_end", "call_id": "c1", "stdout": "a.py", "stderr": "", "exit_code": 0},
        {"type": "agent_message", "message": "One file."},
    ]
    found = read_lines(
        [{"model": "gpt-5"}, {"prompt": "List."}, *({"id": "0", "msg": each} for each in told)]
    ).only
    assert sources(found) == "uaa" and found.metadata["model"] == "gpt-5"
    assert found.steps[1].reasoning == "Hm." and len(found.steps[1].observation) == 1


def test_what_exec_prints_is_read_by_completed_items() -> None:
    read = read_lines(CODEX_EXEC)
    found = read.only
    assert (read.format, found.id, sources(found)) == ("codex-exec", "t1", "aa")
    (call,) = found.steps[0].tool_calls
    assert (call.name, call.arguments, found.steps[0].reasoning) == ("shell", {"command": "ls"}, "Hm.")
    assert found.steps[0].observation[0].content[0].text == "a.py"
    assert found.metadata["usage"] == {"input_tokens": 12, "output_tokens": 3} and found.success is None


def test_a_turn_that_failed_is_a_failure() -> None:
    failed = {"type": "turn.failed", "error": {"message": "stream disconnected"}}
    assert read_lines([*CODEX_EXEC[:-1], failed]).only.success is False
