"""Events of Inspect outside of a log ({"events": [{"event": "model" | "tool" | "span_begin" | ..., "timestamp"}]}): the
transcript of a sample on its own.

Calls of models and tools are spans under those that `span_begin` opens (of the type `agent` for each agent); the events
of a tool, as older versions nest them, lie under it. A log's own events stay with it (`inspect`).
"""

import hashlib
from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.placed import object_at, objects, text_at
from apps.trajectories.formats.record import encoded
from apps.trajectories.formats.tracing.observations import READ as READ_OF_SPANS
from apps.trajectories.formats.tracing.observations import observation_span, store_gatherer
from apps.trajectories.formats.tracing.otel_spans import Span
from apps.trajectories.formats.tracing.span_content import SpanKind
from apps.trajectories.formats.tracing.span_runs import REPEATED, read
from workers.schema.decode import require_object

__all__ = ["READ", "REPEATED", "SIGN", "Gathered", "read", "sniff"]
SIGN = "an object with `events` that have an `event` such as model, tool or span_begin and a `timestamp`, of Inspect"
READ = READ_OF_SPANS
_KINDS = frozenset(
    (
        *("model", "tool", "span_begin", "span_end", "sample_init", "sample_limit", "state", "store", "info"),
        *("step", "subtask", "score", "score_edit", "error", "approval", "sandbox", "logger", "input"),
        *("compaction", "branch", "checkpoint", "interrupt"),
    )
)
_LOOKED = 5  # events
_DEEPEST = 16
_KNOWN = ("timestamp", "completed", "input", "output", "arguments", "result", "events")
_OF_OUTPUT = ("choices", "usage")
_NO_MESSAGES = (
    "holds events of Inspect, none of them a call of a model with its messages; send the log (.eval or .json), or "
    "events as its samples have them."
)


def sniff(document: Any) -> bool:
    events = objects(document.get("events")) if isinstance(document, dict) else []
    return (
        bool(events) and all(map(_is_event, events[:_LOOKED])) and not ({"eval", "samples"} & document.keys())
    )


def _is_event(event: dict[str, Any]) -> bool:
    return event.get("event") in _KINDS and isinstance(event.get("timestamp"), str | int | float)


def read_spans(document: Any) -> Iterator[Span]:
    """Raises InvalidRecord for what is no object."""
    document = require_object(document)
    events = objects(document.get("events"))
    named = text_at(document, "sample_uuid", "transcript_id", "uuid")
    trace = named or hashlib.sha256(encoded(events)).hexdigest()[:32]
    about = {key: value for key, value in document.items() if key != "events"}
    yield observation_span(about, trace=trace, id=trace, parent=None, kind="chain", given=None, gave=None)
    yield from _spans(events, trace, trace, 0)


def _answer(event: dict[str, Any]) -> dict[str, Any]:
    choices = objects(object_at(event, "output").get("choices"))
    return object_at(choices[0], "message") if choices else {}


Gathered = store_gatherer(read_spans, refusal=_NO_MESSAGES)


def _spans(events: list[dict[str, Any]], trace: str, parent: str, depth: int) -> Iterator[Span]:
    for index, event in enumerate(events):
        kind = event.get("event")
        under = text_at(event, "span_id") or parent
        own = text_at(event, "uuid") or f"{parent}/{index}"
        if kind == "span_begin":
            is_agent = event.get("type") == "agent"
            above = text_at(event, "parent_id") or parent
            yield _span(event, trace, text_at(event, "id") or own, above, "agent" if is_agent else "chain")
        elif kind == "model":
            output = object_at(event, "output")
            model = text_at(output, "model") or text_at(event, "model")
            rest = {key: value for key, value in output.items() if key not in _OF_OUTPUT}
            choices = objects(output.get("choices"))
            rest |= {"stop_reason": choices[0].get("stop_reason")} if choices else {}
            yield _span(
                event, trace, own, under, "model", output=rest,
                given=event.get("input"), gave=_answer(event) or None, model=model, usage=output.get("usage"),
            )  # fmt: skip
        elif kind == "tool":
            name = text_at(event, "function")
            yield _span(
                event, trace, own, under, "tool",
                given=event.get("arguments"), gave=_result(event), name=name, call_id=text_at(event, "id"),
            )  # fmt: skip
            if depth < _DEEPEST:
                yield from _spans(objects(event.get("events")), trace, own, depth + 1)
        else:
            yield _span(event, trace, own, under, "other")


def _result(event: dict[str, Any]) -> Any:
    error = event.get("error")
    return event.get("result") or (error if error else event.get("result"))


def _span(
    event: dict[str, Any],
    trace: str,
    id: str,
    parent: str,
    kind: SpanKind,
    given: Any = None,
    gave: Any = None,
    output: dict[str, Any] | None = None,
    **about: Any,
) -> Span:
    name = {"name": event.get("name")} if kind in ("agent", "chain") else {}
    found = observation_span(
        event,
        trace=trace,
        id=id,
        parent=parent or None,
        kind=kind,
        given=given,
        gave=gave,
        start=event.get("timestamp"),
        end=event.get("completed"),
        known=_KNOWN,
        is_error=bool(event.get("error")),
        **name,
        **about,
    )
    rest = {key: value for key, value in (output or {}).items() if value not in (None, "", [], {})}
    found["rest"] = found["rest"] | ({"output": rest} if rest else {})
    return found
