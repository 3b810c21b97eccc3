"""Claude Code: published sessions counted by their own lines, and what its stream of events says."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.trajectories.logs import ReadLog, read_document, read_lines, sources, step_counts, unread

SESSION = "claude-code__*.jsonl"


def said(kind: str, content: Any, uuid: str, **others: Any) -> dict[str, Any]:
    identity = others.pop("id", None)
    message = {"role": kind, "content": content} | ({"id": identity} if identity else {})
    usage = others.pop("usage", None)
    message |= {"usage": usage} if usage else {}
    return {"type": kind, "message": message, "uuid": uuid, "sessionId": "s1", "cwd": "/w"} | others


def call(identity: str, name: str = "Bash") -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": name, "input": {"command": f"run {identity}"}}


def result(identity: str, content: Any = "done") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identity, "content": content}


def _expected(path: Path) -> Counter[str]:
    """By the lines of the file alone."""
    found: Counter[str] = Counter()
    answers = set()
    for line in path.read_text().splitlines():
        event = json.loads(line)
        message = event.get("message") if isinstance(event, dict) else None
        if not isinstance(message, dict):
            found["user"] += isinstance(message, str)
            continue
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        kinds = Counter(block.get("type") for block in blocks if isinstance(block, dict))
        found["calls"] += kinds["tool_use"]
        found["tied"] += kinds["tool_result"]
        found["reasoning"] += kinds["thinking"]
        if event["type"] == "assistant":
            answers.add(message.get("id", event["uuid"]))
        elif not kinds["tool_result"]:
            found["user"] += 1
    found["agent"] = len(answers)
    return found


def test_the_published_sessions_have_what_their_lines_have(shared_data: Path) -> None:
    paths = sorted((shared_data / "wild").glob(SESSION))
    assert len(paths) == 4
    for path in paths:
        read = ReadLog(path.read_bytes())
        assert (read.format, read.errors, read.dropped) == ("claude-code", [], []), path
        assert sum(map(step_counts, read.trajectories), Counter()) == +_expected(path), path
        assert all(not unread(each) or "edge" in path.name for each in read.trajectories)


def test_what_a_session_states(shared_data: Path) -> None:
    found = ReadLog((shared_data / "wild/claude-code__agent_session.jsonl").read_bytes()).only
    assert (found.id, found.agent, found.agent_version) == ("test-session-004", "Claude Code", "2.0.76")
    assert found.task.instruction == "Explore the codebase structure"
    assert found.metadata["model"] == "claude-opus-4-5-20251101"
    assert found.metadata["cwd"] == "/Users/test/project" and found.metadata["gitBranch"] == "main"
    assert found.success is None


def test_lines_of_one_answer_are_one_step_and_its_usage_counts_once() -> None:
    read = read_lines(
        [
            said("user", "Fix it.", "u1"),
            said(
                "assistant",
                [{"type": "thinking", "thinking": "Hm."}],
                "u2",
                id="m1",
                usage={"output_tokens": 1},
            ),
            said("assistant", [call("t1")], "u3", id="m1", usage={"input_tokens": 5, "output_tokens": 9}),
            said("user", [result("t1")], "u4", toolUseResult={"stdout": "done", "interrupted": False}),
            said("assistant", [call("t2")], "u5", id="m1", usage={"input_tokens": 5, "output_tokens": 9}),
            said("user", [result("t2")], "u6"),
            said(
                "assistant", [{"type": "text", "text": "Fixed."}], "u7", id="m2", usage={"output_tokens": 2}
            ),
        ]
    )
    found = read.only
    assert sources(found) == "uaa"
    answer = found.steps[1]
    assert answer.reasoning == "Hm." and [each.id for each in answer.tool_calls] == ["t1", "t2"]
    assert [each.call_id for each in answer.observation] == ["t1", "t2"]
    assert answer.observation[0].extra["message"]["events"][0]["toolUseResult"]["stdout"] == "done"
    assert answer.metrics == {"input_tokens": 5, "output_tokens": 9}
    assert found.metadata["usage"] == {"input_tokens": 5, "output_tokens": 11}
    assert not read.dropped and not unread(found)


def test_sub_agents_are_trajectories_that_name_their_session() -> None:
    read = read_lines(
        [
            {"type": "file-history-snapshot", "messageId": "x", "snapshot": {"trackedFileBackups": {}}},
            said("user", "Go.", "u1", isSidechain=False),
            said("assistant", [call("t1", "Task")], "u2", parentUuid="u1"),
            said("user", "Look.", "a1", parentUuid=None, isSidechain=True),
            said("assistant", "I see.", "a2", parentUuid="a1", isSidechain=True),
            said("user", "Search.", "b1", isSidechain=True, agentId="b"),
            said("assistant", "Found.", "b2", isSidechain=True, agentId="b"),
            said("user", "Warm up.", "c1", isSidechain=True, agentId="c"),
            said("user", [result("t1")], "u3", parentUuid="u2", agentId="b"),
            said("assistant", "Done.", "u4", parentUuid="u3"),
        ]
    )
    assert not read.errors
    assert {each.id: sources(each) for each in read.trajectories} == {
        "s1": "uaa",
        "s1/a1": "ua",
        "s1/b": "ua",
    }
    assert [each.metadata.get("parent") for each in read.trajectories] == [None, "s1", "s1"]
    assert any("did nothing" in reason for _, reason in read.dropped)


def test_a_resumed_session_goes_on_and_is_not_told_twice() -> None:
    first = [said("user", "Go.", "u1"), said("assistant", "Gone.", "u2", parentUuid="u1")]
    again = [event | {"sessionId": "s2"} for event in first]
    found = read_lines([*first, *again, said("user", "On.", "u3", parentUuid="u2", sessionId="s2")]).only
    assert (found.id, sources(found)) == ("s1", "uau")


def test_what_the_client_wrote_is_of_the_system() -> None:
    found = read_lines(
        [
            {"type": "summary", "summary": "A title", "leafUuid": "u9"},
            said("user", "<local-command-caveat>", "u1", isMeta=True),
            said("user", "Go.", "u2"),
            said("assistant", "Gone.", "u3"),
            {"type": "system", "subtype": "compact_boundary", "content": "Compacted", "sessionId": "s1"},
            said("user", "What was said before", "u4", isCompactSummary=True),
            {
                "type": "attachment",
                "attachment": {"type": "queued_command", "prompt": "Faster."},
                "sessionId": "s1",
            },
            {
                "type": "assistant",
                "message": {"model": "<synthetic>", "content": "API Error"},
                "sessionId": "s1",
            },
        ]
    ).only
    assert sources(found) == "suassus"
    assert found.task.instruction == "Go." and found.metadata["title"] == "A title"
    assert found.steps[5].text == "Faster."


STREAM: list[dict[str, Any]] = [
    {"type": "system", "subtype": "init", "session_id": "r1", "cwd": "/w", "model": "m", "tools": ["Bash"]},
    {"type": "assistant", "message": {"id": "m1", "role": "assistant", "content": [call("t1", "Task")]}},
    {"type": "user", "message": {"role": "user", "content": "Look."}, "parent_tool_use_id": "t1"},
    {"type": "assistant", "message": {"id": "m2", "content": "I see."}, "parent_tool_use_id": "t1"},
    {"type": "user", "message": {"role": "user", "content": [result("t1")]}, "parent_tool_use_id": None},
    {
        "type": "result",
        "subtype": "error_max_turns",
        "is_error": True,
        "duration_ms": 2500,
        "total_cost_usd": 0.25,
        "usage": {"input_tokens": 7, "output_tokens": 8},
    },
]


@pytest.mark.parametrize("error, success", [(True, False), (False, None)])
def test_a_stream_ends_with_cost_and_outcome(error: bool, success: bool | None) -> None:
    events = [event | {"session_id": "r1"} for event in STREAM]
    events[-1]["is_error"] = error
    main, sub = read_lines(events).trajectories
    assert (main.id, main.success, sources(main)) == ("r1", success, "a")
    assert (main.metadata["cost"], main.metadata["seconds"]) == (0.25, 2.5)
    assert main.metadata["usage"] == {"input_tokens": 7, "output_tokens": 8}
    assert len(main.steps[0].observation) == 1
    assert (sub.id, sub.metadata["parent"], sub.metadata["call"], sources(sub)) == ("r1/t1", "r1", "t1", "ua")


def test_an_answer_alone_is_a_step() -> None:
    assert read_lines([STREAM[-1] | {"result": "Four."}]).only.steps[0].text == "Four."


def test_an_export_of_the_web_is_read() -> None:
    lines = [said("user", "Go.", "u1"), said("assistant", "Gone.", "u2")]
    assert sources(read_document({"loglines": lines, "sessionStatus": "idle"}).only) == "ua"


def test_calls_of_cursor_have_their_results() -> None:
    body = {"args": {"path": "a.py"}}
    told = {"type": "tool_call", "call_id": "c1", "session_id": "s"}
    found = read_lines(
        [
            {
                "type": "system",
                "subtype": "init",
                "session_id": "s",
                "model": "m",
                "permissionMode": "default",
            },
            {"type": "user", "message": {"role": "user", "content": "Read."}, "session_id": "s"},
            told | {"subtype": "started", "tool_call": {"readToolCall": body}},
            told
            | {"subtype": "completed", "tool_call": {"readToolCall": body | {"result": {"success": {}}}}},
        ]
    ).only
    assert found.agent == "Cursor" and [each.name for each in found.steps[1].tool_calls] == ["read"]
    assert len(found.steps[1].observation) == 1


def test_a_broken_line_is_named_and_a_log_without_answers_is_refused() -> None:
    whole = [json.dumps(said("user", "Go.", "u1")), json.dumps(said("assistant", "Gone.", "u2"))]
    cut = ReadLog("\n".join([*whole, '{"type":"user","mess']).encode())
    assert [sources(each) for each in cut.trajectories] == ["ua"] and "not valid JSON" in cut.errors[0]
    assert "no message of the agent" in ReadLog(whole[0].encode()).errors[0]
