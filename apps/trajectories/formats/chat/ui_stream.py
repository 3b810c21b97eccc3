"""Streams of Vercel's AI SDK: `start`, `text-delta`, `tool-input-available`, `tool-output-available` and others, one
after another as JSON lines, an array or server-sent events. An answer with its steps, calls and their results.
"""

import json
from collections.abc import Callable
from typing import Any

from apps.trajectories.formats.event_log import event_log
from apps.trajectories.formats.placed import metered, object_at, objects, storable
from apps.trajectories.formats.stated import run_facts
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory, from_messages
from workers.schema.messages import build_trajectory

SIGN = "events of the AI SDK with a `type` such as text-delta, tool-input-available or tool-output-available"
Event = dict[str, Any]
_BEGINS, _BEGINNING = frozenset(("start", "start-step")), frozenset(("type", "messageId", "messageMetadata"))
_ENDS = frozenset(("finish-step", "finish", "text-end", "reasoning-end", "tool-input-end"))
_PIECE = "a piece of the answer, which is read with the others put together"
LEFT_OUT = {f"/*/{key}": _PIECE for key in ("type", "id", "delta", "textDelta", "inputTextDelta")}
REPEATED = ("/*/toolName", "/*/toolCallId")


def _key(event: Any) -> str | None:
    """Of the answer that begins with an event; None for the one before."""
    begins = (
        isinstance(event, dict) and event.get("type") == "start" and isinstance(event.get("messageId"), str)
    )
    return str(event["messageId"]) if begins else None


Gathered = event_log(key=_key)


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and all(map(_is_event, document))
    return _is_event(document)


def _is_event(value: Any) -> bool:
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(kind, str) or "role" in value:
        return False
    if kind in _BEGINS:
        return value.keys() <= _BEGINNING
    if kind in _ENDS:
        return True
    if kind in ("text-start", "reasoning-start"):
        return "id" in value
    return kind in _READERS and (
        _text(value) is not None or "toolCallId" in value or kind in ("error", "file", "source-url", "abort")
    )


def _text(event: Event) -> str | None:
    return next(
        (event[key] for key in ("delta", "text", "textDelta") if isinstance(event.get(key), str)), None
    )


class _Answer:
    """The messages of an answer, while its events come."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.usages: dict[int, Any] = {}
        self.facts: dict[str, Any] = {}
        self._turn: dict[str, Any] | None = None
        self._texts: dict[str, dict[str, Any]] = {}
        self._calls: dict[str, dict[str, Any]] = {}

    def turn(self) -> dict[str, Any]:
        if self._turn is None:
            self._turn = {"role": "assistant", "content": []}
            self.messages.append(self._turn)
        return self._turn

    def end_turn(self) -> None:
        self._turn = None
        self._texts = {}

    def add_text(self, event: Event) -> None:
        identity = str(event.get("id"))
        if identity not in self._texts:
            self._texts[identity] = {"type": "text", "text": ""}
            self.turn()["content"].append(self._texts[identity])
        self._texts[identity]["text"] += _text(event) or ""

    def add_reasoning(self, event: Event) -> None:
        turn = self.turn()
        turn["reasoning_content"] = turn.get("reasoning_content", "") + (_text(event) or "")

    def add_call(self, event: Event) -> None:
        identity = str(event.get("toolCallId"))
        call = self._calls.get(identity)
        if call is None:
            call = {"id": identity, "type": "function", "function": {"name": "unnamed", "arguments": ""}}
            self._calls[identity] = call
            turn = self.turn()
            turn["tool_calls"] = [*turn.get("tool_calls", ()), call]
        function = call["function"]
        if isinstance(event.get("toolName"), str):
            function["name"] = event["toolName"]
        piece = event.get("inputTextDelta", event.get("argsTextDelta", _text(event)))
        if isinstance(piece, str) and isinstance(function["arguments"], str):
            function["arguments"] += piece
        given = event.get("input", event.get("args"))
        if given is not None:
            function["arguments"] = given if isinstance(given, dict | str) else json.dumps(given)

    def add_result(self, event: Event) -> None:
        gave = next((event[key] for key in ("output", "result", "errorText", "error") if key in event), None)
        identity = str(event.get("toolCallId"))
        if identity not in self._calls:
            self.add_call(event)
        text = gave if isinstance(gave, str) else json.dumps(gave, ensure_ascii=False)
        failed = {"is_error": True} if "error" in str(event.get("type")) else {}
        self.messages.append({"role": "tool", "tool_call_id": identity, "content": text} | failed)
        self.end_turn()

    def add_about(self, event: Event) -> None:
        """A file, a source or an error, next to what was said."""
        kind = str(event["type"])
        url = event.get("url")
        if kind == "file" and isinstance(url, str) and str(event.get("mediaType")).startswith("image/"):
            self.turn()["content"].append({"type": "image_url", "image_url": {"url": url}})
            return
        turn = self.turn()
        turn[kind] = [*turn.get(kind, ()), {key: value for key, value in event.items() if key != "type"}]

    def finish(self, event: Event) -> None:
        usage = object_at(event, "totalUsage", "usage")
        self.facts |= {key: value for key, value in event.items() if key != "type" and value is not None}
        if usage and event.get("type") == "finish-step" and self._turn is not None:
            self.usages[len(self.messages) - 1] = usage
        self.end_turn()


_READERS: dict[str, Callable[[_Answer, Event], None]] = {
    "text-delta": _Answer.add_text,
    "reasoning-delta": _Answer.add_reasoning,
    **dict.fromkeys(
        ("tool-input-start", "tool-input-delta", "tool-input-available", "tool-call", "tool-input-error"),
        _Answer.add_call,
    ),
    **dict.fromkeys(
        ("tool-output-available", "tool-output-error", "tool-result", "tool-error"), _Answer.add_result
    ),
    **dict.fromkeys(("file", "source-url", "source-document", "error", "abort"), _Answer.add_about),
    **dict.fromkeys(("finish-step", "finish"), _Answer.finish),
}


@storable
def read(document: Any) -> Trajectory:
    events = objects(document) if isinstance(document, list) else [document]
    answer = _Answer()
    about: dict[str, Any] = {}
    for event in events:
        kind = event.get("type")
        if not isinstance(kind, str):
            continue
        if kind == "start":
            about |= {key: value for key, value in event.items() if key != "type"}
        elif kind == "start-step":
            answer.end_turn()
        elif kind in _READERS:
            _READERS[kind](answer, event)
    if not answer.messages:
        raise InvalidRecord("these events hold no text and no call of an answer.")
    for message in answer.messages:
        if message["content"] == []:
            message["content"] = None
    steps = from_messages(answer.messages)
    found = metered(steps, answer.usages)
    identity = about.pop("messageId", None)
    return build_trajectory(
        found,
        Task(id=""),
        id=identity if isinstance(identity, str) else None,
        metadata=run_facts(object_at(answer.facts, "totalUsage", "usage")) | about | answer.facts,
    )
