"""Sessions that are text: Aider's histories, Cursor's exports and transcripts, SpecStory's histories, each in the shape
of its writer (aider/utils.py of Aider-AI/aider; files of Cursor 1.2 and 2.3; Markdown v2.1.0 of specstoryai)."""

import json

from tests.trajectories.coding_agents.transcripts import AIDER_CALLS, AIDER_CHAT, CURSOR_EXPORT, SPECSTORY
from tests.trajectories.logs import ReadLog, sources, step_counts
from tests.trajectories.reading import read_bytes, zipped


def test_a_session_of_aider_is_a_trajectory_and_one_without_an_answer_is_named() -> None:
    found, refused, reader = read_bytes(AIDER_CHAT.encode())
    assert not refused and len(found) == 1
    (session,) = found
    assert sources(session) == "euaeua" and session.agent == "aider"
    assert session.steps[1].text == "Write a file.\n\nKeep it short."
    assert session.steps[2].text == "Here it is:\n\n# a heading\n```python\nx = 1\n```"
    assert (
        session.steps[3].observation[0].content[0].text
        == "Tokens: 2k sent. Cost: $0.25 message, $0.25 session."
    )
    assert (session.metadata["model"], session.metadata["cost"]) == ("openai/small", 0.25)
    assert session.task.instruction == session.steps[1].text
    assert [each["reason"] for each in reader.dropped.as_json()] == [
        "a run in which the agent did nothing; the file has others in which it did"
    ]


def test_only_sessions_without_an_answer_are_one_refusal() -> None:
    found, refused, _ = read_bytes(
        b"# aider chat started at 2025-01-01 10:00:00\n\n> Aider v0.86\n\n#### hello\n"
    )
    assert not found and [error.message for error in refused] == [
        "a chat history of Aider has no run in which the agent did anything; leave the file out."
    ]


def test_each_call_of_aider_has_its_messages_and_its_answer() -> None:
    found, refused, _ = read_bytes(AIDER_CALLS.encode())
    assert not refused and [sources(each) for each in found] == ["sua", "suaua"]
    assert found[0].steps[0].text == "Act as an expert.\n\nBe short."
    assert found[1].steps[-1].text == "TO LLM is only text here.\n-- done" and found[1].metadata["answered"]


def test_a_chat_that_cursor_exported_keeps_rules_within_a_turn() -> None:
    read = ReadLog(CURSOR_EXPORT.encode())
    assert (read.format, sources(read.only), read.only.agent) == ("cursor", "uaua", "Cursor")
    assert read.only.steps[1].text == "First.\n\n---\n\nSecond." and read.only.metadata["version"] == "2.3.23"


def test_a_transcript_of_cursor_is_one_trajectory() -> None:
    asked = "<timestamp>Tuesday</timestamp>\n<user_query>\nlist it\n</user_query>"
    call = {"type": "tool_use", "name": "Shell", "input": {"command": "ls"}}
    rows = [
        {"role": "user", "message": {"content": [{"type": "text", "text": asked}]}},
        {"role": "assistant", "message": {"content": [{"type": "text", "text": "I list."}, call]}},
        {"type": "turn_ended", "status": "success"},
    ]
    read = ReadLog("\n".join(map(json.dumps, rows)).encode())
    found = read.only
    assert (read.format, sources(found), found.task.instruction) == ("cursor", "ua", "list it")
    assert [(each.name, each.arguments) for each in found.steps[1].tool_calls] == [
        ("Shell", {"command": "ls"})
    ]
    assert found.metadata["events"] == [rows[-1]]


def test_a_history_of_specstory_has_thoughts_and_calls_with_what_came_back() -> None:
    read = ReadLog(SPECSTORY.encode())
    found, counts = read.only, step_counts(read.only)
    assert (read.format, found.agent, found.id) == ("specstory", "Claude Code", "e317d7b9")
    assert sources(found) == "uaaaa" and (counts["calls"], counts["tied"]) == (2, 2)
    assert found.steps[1].reasoning == "I look." and found.steps[4].text == "Done.\n\n_**bold**_ at the end"
    assert [call.arguments for step in found.steps for call in step.tool_calls] == [
        {"type": "search"}, {"type": "read", "summary": "Read file: a.go"},
    ]  # fmt: skip
    assert found.steps[2].observation[0].content[0].text == "pattern `*`\n\n```text\n_**User**_\n```"
    assert found.metadata["model"] == "claude-opus-4-5"


def test_in_an_archive_only_texts_of_a_known_kind_are_read() -> None:
    raw = zipped({"README.md": "# About", "a/.aider.chat.history.md": AIDER_CHAT, "notes.txt": "none"})
    found, refused, reader = read_bytes(raw)
    assert len(found) == 1 and not refused
    named = {each["path"]: each["reason"] for each in reader.dropped.as_json()}
    assert named["/README.md"] == named["/notes.txt"] == "a text that is no session of a kind that is read"
