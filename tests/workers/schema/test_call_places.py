"""Tool results of TRL, which have no ids, and the place of the call that each answers."""

from typing import Any

import pytest

from workers.errors import InvalidRecord
from workers.schema import (
    ScoreInput,
    Task,
    Trajectory,
    from_atif,
    from_messages,
    parse_item,
    to_atif,
    to_messages,
)
from workers.schema.tool_results import call_place, has_orphans
from workers.text.dialect import Dialect

Json = dict[str, Any]
USER = {"role": "user", "content": "Where is 1007?"}


def asks(*names: str, ids: bool = False) -> Json:
    calls = [
        ({"id": f"c{place}"} if ids else {})
        | {"type": "function", "function": {"name": name, "arguments": {}}}
        for place, name in enumerate(names)
    ]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def tool(content: str, **fields: Any) -> Json:
    return {"role": "tool", "content": content, **fields}


def pairs(*messages: Json) -> list[tuple[str, str]]:
    """Each result with the name of its call; "" for an orphan."""
    found = []
    for step in from_messages([USER, *messages]):
        for index, result in enumerate(step.observation):
            place = call_place(step, index)
            name = "" if place is None else step.tool_calls[place].name
            found.append((str(result.content[0].text), name))
    return found


def test_trls_roll_out_is_read() -> None:
    """`{"role": "tool", "name", "content"}`, as `GRPOTrainer(tools=...)` makes them."""
    completion = [asks("look"), tool("sent", name="look"), {"role": "assistant", "content": "It was sent."}]
    item = parse_item({"prompt": [USER], "response": completion})
    assert isinstance(item, ScoreInput) and isinstance(item.content, Trajectory)
    assert [step.source for step in item.content.steps] == ["user", "agent", "agent"]
    assert item.content.steps[1].observation[0].content[0].text == "sent"
    assert to_messages(item.content)[2] == completion[1]


@pytest.mark.parametrize("ids", [False, True])
def test_by_id_else_by_name_else_in_order(ids: bool) -> None:
    call = asks("look", "find", "look", ids=ids)
    by_name = [tool("b", name="find"), tool("a", name="look"), tool("c", name="look")]
    assert pairs(call, *by_name) == [("b", "find"), ("a", "look"), ("c", "look")]
    assert pairs(call, tool("a"), tool("b"), tool("c")) == [("a", "look"), ("b", "find"), ("c", "look")]
    # A name that the agent did not use says nothing: harmony's `functions.look`, for example.
    assert pairs(call, tool("a", name="functions.look")) == [("a", "look")]
    if ids:
        assert pairs(call, tool("b", tool_call_id="c1"), tool("a")) == [("b", "find"), ("a", "look")]


def test_a_reused_id_names_the_newest_call() -> None:
    first, second = asks("look", ids=True), asks("find", ids=True)
    assert pairs(first, tool("a", tool_call_id="c0"), second, tool("b", tool_call_id="c0")) == [
        ("a", "look"),
        ("b", "find"),
    ]


def test_results_of_an_earlier_step_are_found_by_name_only() -> None:
    messages = (asks("look"), asks("find"), tool("b"), tool("a", name="look"), tool("c"))
    assert pairs(*messages) == [("a", "look"), ("b", "find"), ("c", "")]


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "assistant", "content": "Wait."}, tool("sent")],
        [asks("look"), tool("sent"), tool("again", name="find")],
        [{"role": "assistant", "content": "Hello."}, tool("sent", name="look")],
    ],
)
def test_an_orphan_is_kept_and_marked(messages: list[Json]) -> None:
    steps = from_messages([USER, *messages])
    assert has_orphans(steps)
    orphan = next(step for step in steps if step.extra.get("orphan"))
    assert (orphan.source, orphan.observation[0].content[0].text) == ("environment", messages[-1]["content"])
    trajectory = Trajectory(steps=steps, task=Task(id="t"))
    assert to_messages(trajectory)[-1] == messages[-1]
    assert from_atif(to_atif(trajectory)).steps == steps


def test_an_id_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidRecord, match="expected a string, got a number") as caught:
        from_messages([USER, asks("look"), tool("sent", tool_call_id=7)], pointer="/messages")
    assert caught.value.pointer == "/messages/2/tool_call_id"


def test_a_model_is_shown_which_call_a_result_answers() -> None:
    dialect = Dialect.of(lambda messages: repr(messages), [])
    messages = [asks("look", "find"), tool("b", name="find"), tool("a", name="look")]
    shown = dialect.messages(from_messages([USER, *messages]))[1][1:]
    assert [(message["name"], message["content"]) for message in shown] == [("find", "b"), ("look", "a")]
