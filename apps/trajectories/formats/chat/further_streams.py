"""The events of streams of Cohere (`message-start`, `content-delta`), of Gemini's Interactions API (`step.delta`), of
Ollama ({"message" | "response", "done": false}), and of completions of Bedrock ({"generation"}, {"outputText"})."""

from collections.abc import Sequence
from typing import Any

from apps.trajectories.formats.chat import plain_answers
from apps.trajectories.formats.placed import object_at, objects

Event = dict[str, Any]
COHERE = (
    *("message-start", "content-start", "content-delta", "content-end", "tool-plan-delta", "tool-call-start"),
    *("tool-call-delta", "tool-call-end", "citation-start", "citation-end", "message-end"),
)
_PIECES = ("text", "content", "thinking", "arguments")
_INTERACTION = ("interaction.", "step.", "content.")


def is_cohere(event: Event) -> bool:
    return event.get("type") in COHERE and ("delta" in event or "index" in event or "id" in event)


def is_interaction(event: Event) -> bool:
    kind = event.get("event_type")
    return isinstance(kind, str) and kind.startswith(_INTERACTION)


def is_ollama(event: Event) -> bool:
    said = event.get("message") if "message" in event else event.get("response")
    return isinstance(event.get("done"), bool) and isinstance(said, dict | str) and "model" in event


def ollama(events: Sequence[Event]) -> Event:
    """The last event has what is said of all."""
    whole: Event = {}
    message: Event = {}
    text = ""
    for event in events:
        piece = object_at(event, "message")
        calls = [*objects(message.get("tool_calls")), *objects(piece.get("tool_calls"))]
        message = _joined(message, {key: value for key, value in piece.items() if key != "tool_calls"})
        message |= {"tool_calls": calls} if calls else {}
        text += event["response"] if isinstance(event.get("response"), str) else ""
        whole |= event
    return whole | ({"message": message} if message else {"response": text})


def is_completion(event: Event) -> bool:
    """A piece of a completion of Bedrock, which says so itself."""
    return plain_answers.answer_path(event) in (("generation",), ("outputText",))


def completion(events: Sequence[Event]) -> Event:
    whole: Event = {}
    for event in events:
        path = plain_answers.answer_path(event)
        before = whole.get(str(path[0])) if path else None
        whole |= {key: value for key, value in event.items() if value is not None}
        if path and isinstance(before, str):
            whole[str(path[0])] = before + str(event[str(path[0])])
    return whole


def cohere(events: Sequence[Event]) -> Event:
    whole: Event = {"finish_reason": None}
    message: Event = {"role": "assistant", "content": []}
    blocks: dict[int, Event] = {}
    calls: dict[int, Event] = {}
    for event in events:
        delta = object_at(event, "delta")
        piece = object_at(delta, "message")
        place = event.get("index")
        place = place if isinstance(place, int) else 0
        if event.get("type") == "message-start":
            whole |= {"id": event["id"]} if "id" in event else {}
        elif event.get("type") == "message-end":
            whole |= delta
        if isinstance(piece.get("tool_plan"), str):
            message["tool_plan"] = str(message.get("tool_plan") or "") + piece["tool_plan"]
        if content := object_at(piece, "content"):
            blocks[place] = _joined(blocks.get(place, {}), content)
        if call := object_at(piece, "tool_calls"):
            calls[place] = _joined(calls.get(place, {}), call)
        if citation := object_at(piece, "citations"):
            message["citations"] = [*objects(message.get("citations")), citation]
    message["content"] = [blocks[place] for place in sorted(blocks)]
    if calls:
        message["tool_calls"] = [calls[place] for place in sorted(calls)]
    return whole | {"message": message}


def interaction(events: Sequence[Event]) -> Event:
    whole: Event = {}
    steps: dict[int, Event] = {}
    for event in events:
        whole |= {key: value for key, value in object_at(event, "interaction").items() if value is not None}
        place = event.get("index")
        if not isinstance(place, int):
            continue
        if started := object_at(event, "step", "content"):
            steps[place] = dict(started)
        elif (delta := object_at(event, "delta")) and place in steps:
            _add_delta(steps[place], delta)
    return {"object": "interaction"} | whole | {"steps": [steps[place] for place in sorted(steps)]}


def _add_delta(step: Event, delta: Event) -> None:
    """A piece of text, of reasoning or of a picture is content; the arguments of a call come as text."""
    if isinstance(delta.get("arguments"), str):
        before = step.get("arguments")
        step["arguments"] = (before if isinstance(before, str) else "") + delta["arguments"]
    elif isinstance(delta.get("text"), str):
        parts = objects(step.get("content"))
        if parts and isinstance(parts[-1].get("text"), str) and "annotations" not in delta:
            parts[-1] = parts[-1] | {"text": parts[-1]["text"] + delta["text"]}
        else:
            parts.append(delta)
        step["content"] = parts
    elif summary := object_at(delta, "content"):
        step["summary"] = [*objects(step.get("summary")), summary]
    else:
        step |= {key: value for key, value in delta.items() if key != "type"}


def _joined(before: Event, piece: Event) -> Event:
    """Texts one after another, all else as it came last."""
    found = dict(before)
    for key, value in piece.items():
        held = found.get(key)
        if isinstance(value, dict) and isinstance(held, dict):
            found[key] = _joined(held, value)
        elif isinstance(value, str) and isinstance(held, str) and key in _PIECES:
            found[key] = held + value
        else:
            found[key] = value
    return found
