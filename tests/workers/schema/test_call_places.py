"""Tool results of TRL, which have no ids, and the place of the call that each answers."""

import json
import time
from typing import Any

import pytest

from apps.datasets.exports.conversations import conversation_messages
from apps.trajectories.formats.chat import openai
from apps.trajectories.openai_documents import to_document
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
from workers.schema.reading_flags import reading_flags
from workers.schema.tool_results import call_places, has_orphans
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
        for place, result in zip(call_places(step), step.observation, strict=True):
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


@pytest.mark.parametrize("ids", [False, True])
def test_pairing_takes_time_in_proportion_to_the_results(ids: bool) -> None:
    """10,000 calls of one step and their results took half a minute."""
    count = 10_000
    fields = [{"tool_call_id": f"c{place}"} if ids else {"name": "look"} for place in range(count)]
    before = time.process_time()
    found = pairs(asks(*["look"] * count, ids=ids), *(tool("x", **each) for each in fields))
    assert len(found) == count
    assert time.process_time() - before < 3


def test_exports_name_the_call_that_a_result_answers() -> None:
    """By its place, where the calls have no ids and results come in another order."""
    messages = [USER, asks("look", "find"), tool("b", name="find"), tool("a", name="look")]
    trajectory = Trajectory(steps=from_messages(messages), task=Task(id="t"))
    assert [message["name"] for message in conversation_messages(trajectory)[2:]] == ["find", "look"]
    document = to_document(trajectory)
    ids = [call["id"] for call in document["messages"][1]["tool_calls"]]
    assert [message["tool_call_id"] for message in document["messages"][2:]] == ids[::-1]
    back = openai.read(json.loads(json.dumps(document)))
    assert call_places(back.steps[1]) == [1, 0]
    assert back.content_hash == trajectory.content_hash


def test_calls_of_both_fields_are_read() -> None:
    called = asks("look", ids=True) | {"function_call": {"name": "find", "arguments": "{}"}}
    assert [call.name for call in from_messages([USER, called])[1].tool_calls] == ["look", "find"]
    same = asks("look", ids=True) | {"function_call": {"name": "look", "arguments": "{}"}}
    assert [call.id for call in from_messages([USER, same])[1].tool_calls] == ["c0"]


def test_reasoning_next_to_thinking_blocks_is_read() -> None:
    blocks = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Yes."}]
    said = {"role": "assistant", "content": blocks, "reasoning_content": "First, look."}
    assert from_messages([USER, said])[1].reasoning == "First, look.\nHm."
    assert from_messages([USER, said | {"reasoning_content": "Hm."}])[1].reasoning == "Hm."


def test_a_type_next_to_the_fields_of_a_chat_message_makes_no_item_of_it() -> None:
    typed = {"type": "message"}
    messages = [USER | typed, asks("look", ids=True) | typed, tool("sent", tool_call_id="c0") | typed]
    step = from_messages(messages)[1]
    assert [call.name for call in step.tool_calls] == ["look"]
    assert step.observation[0].call_id == "c0"
    assert "type" not in step.extra.get("message", {})
    item = {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Hi"}],
    }
    assert from_messages([USER, item])[1].text == "Hi"


def test_an_item_of_an_unknown_kind_is_text_and_named() -> None:
    item = {"type": "mcp_list_tools", "id": "x1", "server_label": "desk", "tools": []}
    parsed = parse_item({"prompt": [USER, item], "response": "Yes."})
    assert isinstance(parsed.content, Trajectory)
    step = parsed.content.steps[1]
    assert (step.source, json.loads(step.observation[0].content[0].text or "")) == ("environment", item)
    assert "unread:items" in reading_flags(parsed, reads_reference=False)
