"""Sessions of Claude Code in which a person went back to an earlier point: each branch is a trajectory."""

from typing import Any

from tests.trajectories.logs import read_lines, sources
from workers.schema import Trajectory


def _event(uuid: str, after: str | None, text: str, **more: Any) -> dict[str, Any]:
    kind = "user" if uuid.startswith("u") else "assistant"
    message = {"role": kind, "content": [{"type": "text", "text": text}]}
    return {"type": kind, "uuid": uuid, "parentUuid": after, "sessionId": "s1", "message": message} | more


def _texts(found: Trajectory) -> list[str]:
    return [step.text for step in found.steps]


START = [_event("u1", None, "Hi"), _event("a1", "u1", "Hello.")]


def test_a_prompt_that_was_edited_begins_a_branch() -> None:
    read = read_lines(
        [
            *START,
            _event("u2", "a1", "Make it red."),
            _event("a2", "u2", "It is red."),
            _event("u3", "a1", "Make it blue."),
            _event("a3", "u3", "It is blue."),
        ]
    )
    assert not read.errors
    went_on, left = read.trajectories
    assert _texts(went_on) == ["Hi", "Hello.", "Make it blue.", "It is blue."]
    assert _texts(left) == ["Hi", "Hello.", "Make it red.", "It is red."]
    assert (went_on.id, left.id, left.metadata["parent"], left.metadata["branch"]) == (
        "s1",
        "s1/u2",
        "s1",
        "u2",
    )
    assert went_on.task.id == left.task.id and "branch" not in went_on.metadata


def test_branches_of_branches_and_prompts_without_an_answer() -> None:
    read = read_lines(
        [
            *START,
            _event("u2", "a1", "One."),
            _event("a2", "u2", "1"),
            _event("u3", "a2", "Two."),
            _event("a3", "u3", "2"),
            _event("u4", "a2", "Three."),
            _event("a4", "u4", "3"),
            _event("u5", "a1", "Wrong."),
            _event("u6", "a1", "Four."),
            _event("a6", "u6", "4"),
        ]
    )
    assert [_texts(each)[2:] for each in read.trajectories] == [
        ["Four.", "4"], ["One.", "1", "Two.", "2"], ["One.", "1", "Three.", "3"],
    ]  # fmt: skip
    assert any("no trajectory" in reason or "belongs" in reason for _, reason in read.dropped)


def test_results_of_parallel_calls_are_no_branches() -> None:
    def call(uuid: str, after: str) -> dict[str, Any]:
        block = {"type": "tool_use", "id": uuid, "name": "Read", "input": {}}
        return _event(uuid, after, "") | {"message": {"id": "m", "role": "assistant", "content": [block]}}

    def result(uuid: str, after: str, of: str) -> dict[str, Any]:
        block = {"type": "tool_result", "tool_use_id": of, "content": "text"}
        return _event(uuid, after, "") | {"message": {"role": "user", "content": [block]}}

    found = read_lines(
        [
            *START,
            _event("u2", "a1", "Read both."),
            call("a2", "u2"),
            call("a3", "a2"),
            result("u3", "a2", "a2"),
            result("u4", "a3", "a3"),
            _event("a5", "u4", "Done."),
        ]
    ).only
    assert sources(found) == "uauaa" and sum(len(step.observation) for step in found.steps) == 2


def test_many_branches_stay_in_the_order_of_the_log() -> None:
    events = [*START]
    for number in range(60):
        events += [_event(f"u{number}x", "a1", "Again."), _event(f"a{number}x", f"u{number}x", str(number))]
    assert len(read_lines(events).only.steps) == 122
