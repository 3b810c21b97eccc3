"""OpenTelemetry GenAI spans of every generation of the conventions."""

import json
from typing import Any

import pytest

from apps.trajectories import formats
from apps.trajectories.formats.record import Record
from workers.errors import InvalidRecord
from workers.schema import Trajectory

OTEL = formats.FORMATS["otel"]
TOOL = {"type": "tool_call", "id": "c1", "name": "look", "arguments": {"order": 7}}
ASKED = [{"role": "user", "parts": [{"type": "text", "content": "Where is it?"}]}]
CALLED = [
    {
        "role": "assistant",
        "parts": [{"type": "reasoning", "content": "Hm."}, TOOL],
        "finish_reason": "tool_call",
    }
]
TOLD = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "in Ulm"}]}]
SAID = [{"role": "assistant", "parts": [{"type": "text", "content": "In Ulm."}], "finish_reason": "stop"}]


def value(given: Any) -> dict[str, Any]:
    if isinstance(given, list):
        return {"arrayValue": {"values": [value(element) for element in given]}}
    if isinstance(given, dict):
        return {"kvlistValue": {"values": attributes(given)}}
    return {"intValue": str(given)} if isinstance(given, int) else {"stringValue": given}


def attributes(given: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value(element)} for key, element in given.items()]


def span(
    number: int, given: dict[str, Any], parent: int = 0, events: Any = (), **more: Any
) -> dict[str, Any]:
    return {
        "traceId": "t1",
        "spanId": f"s{number}",
        "parentSpanId": f"s{parent}" if parent else "",
        "name": f"span {number}",
        "startTimeUnixNano": str(1000 + number),
        "attributes": attributes(given),
        "events": [{"name": name, "attributes": attributes(event)} for name, event in events],
    } | more


def traced(*spans: dict[str, Any]) -> dict[str, Any]:
    resource = {"attributes": attributes({"service.name": "desk"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": list(spans)}]}]}


def read(document: dict[str, Any]) -> list[Trajectory]:
    assert formats.detect(document) is OTEL
    return gathered(document)


def gathered(*documents: dict[str, Any]) -> list[Trajectory]:
    assert OTEL.gather is not None
    gatherer = OTEL.gather(2**20)
    for line, document in enumerate(documents, 1):
        gatherer.add(Record(line, document=document))
    found = []
    for record in gatherer.records():
        if record.skipped:
            continue
        if record.error is not None:
            raise record.error
        found.append(OTEL.read(record.document))
    return found


def chat(asked: Any, said: Any, **more: Any) -> dict[str, Any]:
    about = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    return about | {"gen_ai.input.messages": asked, "gen_ai.output.messages": said} | more


def expected(trajectory: Trajectory) -> None:
    assert [(step.source, step.text) for step in trajectory.steps] == [
        ("user", "Where is it?"),
        ("agent", ""),
        ("agent", "In Ulm."),
    ]
    call = trajectory.steps[1].tool_calls[0]
    assert (call.name, call.arguments) == ("look", {"order": 7})
    (result,) = trajectory.steps[1].observation
    assert (result.call_id, result.content[0].text) == ("c1", "in Ulm")


@pytest.mark.parametrize("packed", [True, False], ids=["as text", "as values"])
def test_messages_as_they_are_told_now(packed: bool) -> None:
    def given(messages: Any) -> Any:
        return json.dumps(messages) if packed else messages

    asked_again = ASKED + CALLED + TOLD
    (read_trajectory,) = read(
        traced(
            span(1, chat(given(ASKED), given(CALLED), **{"gen_ai.usage.input_tokens": 12})),
            span(2, chat(given(asked_again), given(SAID), **{"gen_ai.usage.input_tokens": 30})),
        )
    )
    expected(read_trajectory)
    assert read_trajectory.steps[1].reasoning == "Hm."
    assert (read_trajectory.agent, read_trajectory.id) == ("desk", "t1")
    assert read_trajectory.metadata["usage"] == {"input_tokens": 42}
    assert read_trajectory.metadata["resource"] == {"service.name": "desk"}


def test_system_instructions_are_said_once() -> None:
    system = json.dumps([{"type": "text", "content": "Be kind."}])
    told = {"gen_ai.system_instructions": system}
    (read_trajectory,) = read(
        traced(
            span(1, chat(json.dumps(ASKED), json.dumps(CALLED), **told)),
            span(2, chat(json.dumps(ASKED + CALLED + TOLD), json.dumps(SAID), **told)),
        )
    )
    assert [step.source for step in read_trajectory.steps] == ["system", "user", "agent", "agent"]


def test_events_as_they_were_told_until_1_36() -> None:
    call = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"order": 7}'}}]
    user = ("gen_ai.user.message", {"content": "Where is it?"})
    about = {"gen_ai.operation.name": "chat"}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": json.dumps({"tool_calls": call})}
    before = ("gen_ai.assistant.message", {"tool_calls": json.dumps(call)})
    told = ("gen_ai.tool.message", {"id": "c1", "content": "in Ulm"})
    last = ("gen_ai.choice", {"index": 0, "message": {"content": "In Ulm."}})
    (read_trajectory,) = read(
        traced(
            span(1, about, events=[user, ("gen_ai.choice", choice)]),
            span(2, about, events=[user, before, told, last]),
        )
    )
    expected(read_trajectory)


def test_attributes_with_numbers_in_their_names() -> None:
    prompt = {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Where is it?"}
    called = {
        "tool_calls.0.id": "c1",
        "tool_calls.0.name": "look",
        "tool_calls.0.arguments": '{"order": 7}',
    }
    first = {f"gen_ai.completion.0.{key}": value for key, value in called.items()}
    again = {f"gen_ai.prompt.1.{key}": value for key, value in (called | {"role": "assistant"}).items()}
    result = {
        "gen_ai.prompt.2.role": "tool",
        "gen_ai.prompt.2.tool_call_id": "c1",
        "gen_ai.prompt.2.content": "in Ulm",
    }
    (read_trajectory,) = read(
        traced(
            span(1, prompt | first | {"gen_ai.completion.0.role": "assistant"}),
            span(2, prompt | again | result | {"gen_ai.completion.0.content": "In Ulm."}),
        )
    )
    expected(read_trajectory)


def test_one_event_that_holds_it_all() -> None:
    prompt = (
        "gen_ai.content.prompt",
        {"gen_ai.prompt": json.dumps([{"role": "user", "content": "Where is it?"}])},
    )
    (read_trajectory,) = read(
        traced(span(1, {}, events=[prompt, ("gen_ai.content.completion", {"gen_ai.completion": "In Ulm."})]))
    )
    assert [step.text for step in read_trajectory.steps] == ["Where is it?", "In Ulm."]


def test_results_that_no_call_was_told_come_from_the_tools_spans() -> None:
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.result": "in Ulm",
    }
    (read_trajectory,) = read(traced(span(1, chat(json.dumps(ASKED), json.dumps(CALLED))), span(2, tool)))
    assert read_trajectory.steps[1].observation[0].content[0].text == "in Ulm"
    again = chat(json.dumps(ASKED + CALLED + TOLD), json.dumps(SAID))
    (read_trajectory,) = read(
        traced(span(1, chat(json.dumps(ASKED), json.dumps(CALLED))), span(2, tool), span(3, again))
    )
    expected(read_trajectory)  # once


def test_a_sub_agent_is_a_trajectory_that_names_its_parent() -> None:
    def agent(name: str) -> dict[str, Any]:
        return {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}

    inner = [{"role": "user", "parts": [{"type": "text", "content": "Look it up."}]}]
    outer, other = read(
        traced(
            span(1, agent("boss")),
            span(2, chat(json.dumps(ASKED), json.dumps(SAID)), parent=1),
            span(3, {"gen_ai.operation.name": "execute_tool"}, parent=1),
            span(4, agent("scout"), parent=3),
            span(5, chat(json.dumps(inner), json.dumps(SAID)), parent=4, status={"code": 2}),
        )
    )
    assert (outer.agent, outer.id, outer.metadata.get("parent")) == ("boss", "t1/s1", None)
    assert (other.agent, other.id, other.metadata["parent"]) == ("scout", "t1/s4", "t1/s1")
    assert other.steps[0].text == "Look it up."
    assert other.metadata["errors"] == ["span 5"]


def test_traces_are_kept_apart_and_spans_may_come_in_any_order() -> None:
    second = span(2, chat(json.dumps(ASKED + CALLED + TOLD), json.dumps(SAID)))
    first = span(1, chat(json.dumps(ASKED), json.dumps(CALLED)))
    outsider = span(3, chat(json.dumps(ASKED), json.dumps(SAID)), traceId="t2")
    read_trajectory, other = read(traced(second, outsider, first))
    expected(read_trajectory)
    assert (other.id, len(other.steps)) == ("t2", 2)


def test_an_agent_that_forgets_is_told_only_what_is_new() -> None:
    later = [{"role": "user", "parts": [{"type": "text", "content": "And now?"}]}]
    (read_trajectory,) = read(
        traced(
            span(1, chat(json.dumps(ASKED), json.dumps(SAID))),
            span(2, chat(json.dumps(SAID + later), json.dumps(SAID))),
        )
    )
    assert [step.text for step in read_trajectory.steps] == ["Where is it?", "In Ulm.", "And now?", "In Ulm."]


@pytest.mark.parametrize(
    ("document", "pointer", "said"),
    [
        (traced(span(1, {"gen_ai.operation.name": "chat"})), "/resourceSpans", "CAPTURE_MESSAGE_CONTENT"),
        (traced({"name": "x"}), "/resourceSpans/0/scopeSpans/0/spans/0", "a traceId and a spanId"),
        ({"resourceSpans": [1]}, "/resourceSpans/0", "expected a JSON object"),
        ({"resourceSpans": []}, "/resourceSpans", "no span"),
    ],
)
def test_what_cannot_be_read_says_why(document: dict[str, Any], pointer: str, said: str) -> None:
    with pytest.raises(InvalidRecord, match=said) as caught:
        read(document)
    assert caught.value.pointer == pointer


def test_spans_that_are_each_others_parents_end() -> None:
    given = chat(json.dumps(ASKED), json.dumps(SAID))
    found = read(traced(span(1, given, parent=2), span(2, given, parent=1)))
    assert len(found) == 1


@pytest.mark.parametrize("given", ["9" * 5000, "seven", 10**30])
def test_numbers_that_are_none_do_not_end_the_import(given: Any) -> None:
    said = span(1, chat(json.dumps(ASKED), json.dumps(SAID)), startTimeUnixNano=given)
    said["attributes"].append({"key": "gen_ai.usage.input_tokens", "value": {"intValue": given}})
    (trajectory,) = read(traced(said))
    assert trajectory.steps[-1].text == "In Ulm."
