"""Sessions of pi, in the shape of packages/coding-agent/docs/session.md of pi-mono."""

import json
from typing import Any

from tests.trajectories.coding_agents.examples import PI
from tests.trajectories.logs import read_document, read_lines, sources, step_counts
from tests.trajectories.reading import read_bytes


def _entry(identity: str, after: str | None, message: Any = None, **more: Any) -> dict[str, Any]:
    told = {"type": "message", "message": message} if message is not None else {}
    return {"id": identity, "parentId": after, "timestamp": "2026-01-01T10:00:09Z"} | told | more


def _said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


def test_a_session_has_its_calls_its_usage_and_its_folder() -> None:
    read = read_lines(PI)
    found = read.only
    assert (read.format, found.id, found.agent, found.metadata["cwd"]) == ("pi", "s1", "pi", "/work/shop")
    assert sources(found) == "ua" and found.steps[1].reasoning == "I need ls."
    assert step_counts(found)["tied"] == 1 and found.metadata["model"] == "claude-opus-4-5"
    assert (found.metadata["usage"], found.metadata["cost"]) == (
        {"input_tokens": 12, "output_tokens": 3},
        0.75,
    )
    assert found.steps[1].metrics["cost_output"] == 0.5


def test_what_the_model_is_told_besides_is_read() -> None:
    ran = {"role": "bashExecution", "command": "pwd", "output": "/work", "exitCode": 0}
    found = read_lines(
        [
            *PI,
            _entry("e4", "e3", ran),
            _entry("e5", "e4", type="model_change", modelId="other"),
            _entry("e6", "e5", type="compaction", summary="Files were listed.", tokensBefore=50),
            _entry("e7", "e6", type="custom_message", customType="x", content="A note."),
            _entry("e8", "e7", _said("One file.")),
            _entry("e9", "e8", type="session_info", name="Listing"),
        ]
    ).only
    assert sources(found) == "uaussa" and found.steps[2].text == "Ran `pwd`\n```\n/work\n```"
    assert found.steps[3].text == "Files were listed." and found.metadata["title"] == "Listing"


def test_another_branch_with_an_answer_is_a_trajectory() -> None:
    asked = {"role": "user", "content": "And now?"}
    found, refused, _ = read_bytes(
        b"\n".join(
            json.dumps(each).encode()
            for each in [
                *PI,
                _entry("e4", "e3", asked),
                _entry("e5", "e4", _said("Left.")),
                _entry("e6", "e3", type="branch_summary", summary="It was left.", fromId="e5"),
                _entry("e7", "e6", _said("Went on.")),
            ]
        )
    )
    assert not refused
    went_on, left = found
    assert [step.text for step in went_on.steps][-2:] == ["It was left.", "Went on."] and went_on.id == "s1"
    assert [step.text for step in left.steps][-2:] == ["And now?", "Left."]
    assert (left.id, left.metadata["parent"], left.metadata["branch"]) == ("s1/e5", "s1", "e5")


def test_a_session_of_the_first_version_has_no_tree() -> None:
    lines = [{key: value for key, value in each.items() if key not in ("id", "parentId")} for each in PI[1:]]
    assert sources(read_lines([PI[0], *lines]).only) == "ua"


def test_dialogues_of_api_bank_have_calls_with_their_results() -> None:
    called = {
        "role": "API",
        "api_name": "QueryStock",
        "param_dict": {"stock": "SQ"},
        "result": {"output": 248.9},
    }
    read = read_lines([{"role": "User", "text": "What is it?"}, {"role": "AI", "text": "I look."}, called])
    assert read.format == "message-log" and sources(read.only) == "uaa"
    assert step_counts(read.only)["tied"] == 1 and "248.9" in str(read.only.steps[2].observation)


def test_several_answers_of_a_row_are_trajectories() -> None:
    read = read_document({"instruction": "Name one.", "input": "", "output": ["Red.", "Blue."]})
    assert (read.format, [each.steps[-1].text for each in read.trajectories]) == ("alpaca", ["Red.", "Blue."])
    assert len({each.task.id for each in read.trajectories}) == 1


def test_lines_between_messages_that_are_none_are_kept() -> None:
    found = read_lines(
        [
            {"type": "notice", "source": "a session"},
            {"type": "message", "role": "user", "timestamp": "2026-04-30T07:14:25Z", "text": "Build it."},
            {"type": "title", "title": "A page"},
            {"type": "message", "role": "assistant", "timestamp": "2026-04-30T07:14:29Z", "text": "Built."},
        ]
    ).only
    assert sources(found) == "ua" and len(found.metadata["events"]) == 2
