"""Results that only the spans of tools tell, behind the calls that no history shows a result of."""

from collections.abc import Iterable
from typing import Any

from apps.trajectories.formats.tracing.otel_spans import Span
from apps.trajectories.formats.tracing.span_content import Message


def function_name(call: dict[str, Any]) -> str | None:
    """Of a call as chat messages have it."""
    function = call.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else None


def calls_in(message: Message) -> list[dict[str, Any]]:
    """Its tool calls, as far as they are objects."""
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def call_id(call: dict[str, Any]) -> str | None:
    """None for a call without an id, and where it is no text."""
    identity = call.get("id")
    return identity if isinstance(identity, str) and identity else None


def with_results(
    messages: list[Message], results: Iterable[tuple[Span, Message]], answers: dict[int, Span]
) -> list[Message]:
    """With the results of tools' spans behind the calls that no history shows a result of.

    An id that is used in several turns names another call in each: the results of its spans go to them in turn.
    """
    waiting: dict[str, list[tuple[Span, Message]]] = {}
    known = {call_id(call) for message in messages for call in calls_in(message)}
    for span, tool in results:
        identity = tool.get("tool_call_id")
        place = str(identity) if identity and identity in known else f"name:{tool.get('name')}"
        waiting.setdefault(place, []).append((span, tool))
    places = _places(messages)
    out: list[Message] = []
    for index, message in enumerate(messages):
        out.append(message)
        for call in calls_in(message):
            name = f"name:{function_name(call)}"
            identity = str(call_id(call)) if call_id(call) in waiting else name
            queue = waiting.get(identity)
            if not queue:
                continue
            uses = places[identity]
            if len(queue) < len([place for place in uses if place >= index]) and not _is_between(
                queue[0][0], message, messages, uses, index, answers
            ):
                continue
            _, tool = queue.pop(0)
            if not _is_answered(call, message, messages, index):
                tied = {key: value for key, value in tool.items() if key != "name" or not call_id(call)}
                out.append(tied | {"tool_call_id": call_id(call)})
    return out


def _places(messages: list[Message]) -> dict[str, list[int]]:
    """Of each call's id, and of each name, where the calls are."""
    found: dict[str, list[int]] = {}
    for index, message in enumerate(messages):
        for call in calls_in(message):
            for key in (call_id(call), f"name:{function_name(call)}"):
                if key:
                    found.setdefault(key, []).append(index)
    return found


def _is_between(
    span: Span,
    message: Message,
    messages: list[Message],
    uses: list[int],
    index: int,
    answers: dict[int, Span],
) -> bool:
    """Whether a tool ran after this call and before the next one with its id, where there are fewer runs than calls."""
    later = next((answers.get(id(messages[place])) for place in uses if place > index), None)
    return later is None or span["start"] <= later["start"]


def _is_answered(call: dict[str, Any], message: Message, messages: list[Message], index: int) -> bool:
    """Whether a result of the call is among the messages before the next call with its id."""
    identity = call_id(call)
    for later in messages[index + 1 :]:
        if later["role"] == "tool" and identity and later.get("tool_call_id") == identity:
            return True
        if later["role"] == "tool" and not (identity and later.get("tool_call_id")):
            return True
        if any(call_id(other) == identity for other in calls_in(later)):
            return False
    return False
