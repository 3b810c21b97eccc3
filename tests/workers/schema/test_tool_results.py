"""Which call a tool result answers: by id, else by name, else the oldest unanswered call, else none."""

from typing import Any

from workers.schema import Step, from_messages


def call(name: str, identity: str | None = None, **arguments: Any) -> dict[str, Any]:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def asked(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def tool_message(content: str, **fields: Any) -> dict[str, Any]:
    return {"role": "tool", "content": content} | fields


def results(steps: tuple[Step, ...]) -> list[list[tuple[str | None, str | None]]]:
    return [[(result.call_id, result.content[0].text) for result in step.observation] for step in steps]


def test_by_id() -> None:
    steps = from_messages(
        [
            asked(call("f", "1"), call("f", "2")),
            tool_message("b", tool_call_id="2"),
            tool_message("a", tool_call_id="1"),
        ]
    )
    assert results(steps) == [[("2", "b"), ("1", "a")]]


def test_an_id_that_is_used_again_is_the_newest_call() -> None:
    steps = from_messages(
        [
            asked(call("f", "1")),
            tool_message("a", tool_call_id="1"),
            asked(call("f", "1")),
            tool_message("b", tool_call_id="1"),
        ]
    )
    assert results(steps) == [[("1", "a")], [("1", "b")]]


def test_by_name_without_ids() -> None:
    steps = from_messages(
        [
            asked(call("f"), call("g")),
            tool_message("of g", name="g"),
            tool_message("of f", name="f", tool_call_id=None),
        ]
    )
    assert results(steps) == [[(None, "of g"), (None, "of f")]]
    named = from_messages(
        [
            asked(call("f", "1"), call("g", "2")),
            tool_message("of g", name="g"),
            tool_message("of f", name="f"),
        ]
    )
    assert results(named) == [[("2", "of g"), ("1", "of f")]]


def test_two_calls_of_one_name_are_answered_in_order() -> None:
    steps = from_messages(
        [asked(call("f", "1"), call("f", "2")), tool_message("a", name="f"), tool_message("b", name="f")]
    )
    assert results(steps) == [[("1", "a"), ("2", "b")]]


def test_the_oldest_unanswered_call_of_the_last_agent_step() -> None:
    steps = from_messages(
        [
            asked(call("f", "1"), call("g", "2")),
            tool_message("a", tool_call_id="1"),
            tool_message("b"),
            tool_message("c", tool_call_id="9"),
        ]
    )
    assert results(steps) == [[("1", "a"), ("2", "b")], [(None, "c")]]
    assert [step.source for step in steps] == ["agent", "environment"]


def test_an_unknown_id_is_kept_next_to_the_call_it_is_taken_for() -> None:
    (step,) = from_messages([asked(call("f", "1")), tool_message("a", tool_call_id="x")])
    assert step.observation[0].call_id == "1"
    assert step.observation[0].extra == {"message": {"tool_call_id": "x"}}


def test_an_orphan_is_an_environment_step_and_marked() -> None:
    steps = from_messages(
        [
            tool_message("left over", tool_call_id="c9"),
            {"role": "assistant", "content": "ok"},
            tool_message("after", name="f"),
        ]
    )
    assert [step.source for step in steps] == ["environment", "agent", "environment"]
    assert [step.extra.get("orphan") for step in steps] == [True, None, True]
    assert results(steps) == [[(None, "left over")], [], [(None, "after")]]


def test_a_function_result_is_tied_by_its_name_alone() -> None:
    called = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    steps = from_messages([called, {"role": "function", "name": "f", "content": "1"}])
    assert results(steps) == [[(None, "1")]]
    orphan = from_messages([called, {"role": "function", "name": "g", "content": "1"}])
    assert [step.source for step in orphan] == ["agent", "environment"]
