"""Pydantic AI and Logfire: the whole conversation on the span of an agent, as `pydantic_ai.all_messages` (messages with
`parts`) or `all_messages_events` (events by `event.name`), and that of one call of a model as `events`.
"""

from typing import Any

from apps.trajectories.formats.tracing import otel_messages
from apps.trajectories.formats.tracing.call_content import as_text, decoded
from apps.trajectories.formats.tracing.span_content import Message, SpanContent, tool_result

_PREFIX, _CHOICE = "gen_ai.", "gen_ai.choice"


def content(name: str, given: dict[str, Any]) -> SpanContent | None:
    """name: of the span. None where it is not one of Pydantic AI or Logfire."""
    if "all_messages_events" in given or "pydantic_ai.all_messages" in given:
        return _agent(given)
    if "tool_response" in given or "tool_arguments" in given:
        result = tool_result(
            given.get("tool_response"),
            name=str(given.get("gen_ai.tool.name") or ""),
            call_id=given.get("gen_ai.tool.call.id"),
        )
        return SpanContent(kind="tool", result=result, arguments=decoded(given.get("tool_arguments")))
    events = decoded(given.get("events"))
    if not isinstance(events, list) or not all(_is_event(event) for event in events):
        return None
    asked = event_messages(event for event in events if event.get("event.name") != _CHOICE)
    answer = event_messages(event for event in events if event.get("event.name") == _CHOICE)
    return SpanContent(kind="model", asked=asked, answer=answer[:1])


def event_messages(events: Any) -> list[Message]:
    """Messages of events that name themselves; those of one message with an index are one."""
    by_place: dict[Any, Message] = {}
    messages = [message for event in events for message in _event_messages(event)]
    for number, (event, message) in enumerate(messages):
        place = (event.get("gen_ai.message.index"), message["role"])
        if place[0] is None or message["role"] == "tool":
            place = (f"event {number}", message["role"])
        held = by_place.get(place)
        by_place[place] = message if held is None else _joined(held, message)
    return list(by_place.values())


def _event_messages(event: dict[str, Any]) -> list[tuple[dict[str, Any], Message]]:
    kind = str(event.get("event.name", "")).removeprefix(_PREFIX).removesuffix(".message")
    body = event["message"] if isinstance(event.get("message"), dict) else event
    messages = otel_messages.event_messages("assistant" if kind == "choice" else kind, body)
    return [(event, message) for message in messages]


def _agent(given: dict[str, Any]) -> SpanContent:
    messages = decoded(given.get("pydantic_ai.all_messages"))
    if isinstance(messages, list):
        found = otel_messages.part_messages(messages)
    else:
        events = decoded(given.get("all_messages_events"))
        found = (
            event_messages(event for event in events if _is_event(event)) if isinstance(events, list) else []
        )
    result = given.get("final_result")
    if result is not None and (not found or found[-1]["role"] != "assistant"):
        found.append({"role": "assistant", "content": as_text(result)})
    is_answered = bool(found) and found[-1]["role"] == "assistant"
    return SpanContent(
        kind="agent",
        asked=found[:-1] if is_answered else found,
        answer=found[-1:] if is_answered else [],
        agent=str(given.get("gen_ai.agent.name") or given.get("agent_name") or ""),
        model=str(given.get("model_name") or ""),
    )


def _is_event(event: Any) -> bool:
    return isinstance(event, dict) and str(event.get("event.name", "")).startswith(_PREFIX)


def _joined(before: Message, after: Message) -> Message:
    texts = [message["content"] for message in (before, after) if message.get("content")]
    calls = [*before.get("tool_calls", ()), *after.get("tool_calls", ())]
    found = before | after | {"content": "\n".join(map(as_text, texts)) or None}
    return found | ({"tool_calls": calls} if calls else {})
