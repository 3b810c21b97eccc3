"""OpenTelemetry spans in other envelopes than OTLP: one span an object, in a list, on lines, or under `spans`, `data`.

Read are what Phoenix exports (`context.trace_id`, attributes nested, flat, or as columns of a data frame), Node's
`ReadableSpan` (`spanContext`), the console exporter of Python's SDK, MLflow's traces ({"info", "data": {"spans"}}),
Agent-Lightning's store and Jaeger's JSON. All become the spans of `otel_spans`.
"""

import hashlib
import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from apps.trajectories.field_coverage import FieldUse, PathPatterns, lost_fields
from apps.trajectories.formats.tracing import agent_lightning, otel
from apps.trajectories.formats.tracing.otel_messages import plain
from apps.trajectories.formats.tracing.otel_spans import Span
from apps.trajectories.formats.tracing.span_ids import hexadecimal_id, span_time
from apps.trajectories.formats.tracing.span_runs import READ, REPEATED, SpanGatherer, group_by_agent, read
from workers.errors import InvalidRecord
from workers.schema.decode import require_object

__all__ = ["READ", "REPEATED", "SIGN", "Gathered", "group_by_agent", "read", "read_spans", "sniff"]
SIGN = (
    "a span with `attributes` and a `trace_id`, its own or in `context` or `spanContext`; or `spans` of such"
)
_TRACE = ("trace_id", "traceId", "traceID", "context.trace_id", "request_id")
_SPAN = ("span_id", "spanId", "spanID", "context.span_id", "id")  # `id` by Zipkin and Node's console exporter
_PARENT = (
    *("parent_id", "parentId", "parent_span_id", "parentSpanId", "parentSpanID", "parent_spanid"),
    *("context.parent_id", "parentSpanContext"),
)
_START = (
    "start_time_unix_nano",
    "startTimeUnixNano",
    "start_time",
    "startTime",
    "start_timestamp",
    "start_time_ns",
)
_END = ("end_time_unix_nano", "endTimeUnixNano", "end_time", "endTime", "end_timestamp", "end_time_ns")
_KNOWN = (
    *(
        *_TRACE[:-1],
        *_SPAN[:-1],
        *_PARENT,
        *_START,
        *_END,
        "context",
        "spanContext",
        "name",
        "span_name",
        "status",
    ),
    *(
        "operationName",
        "status_code",
        "status_message",
        "attributes",
        "events",
        "resource",
        "span_attributes",
    ),
    *("references", "timestamp", "duration", "tags", "logs", "processID", "resource_attributes"),
)
_COLUMN = "attributes."  # of a data frame
_OF_CALLS = ("openinference.span.kind", "gen_ai.operation.name", "gen_ai.request.model", "ai.operationId")
_EVENT_TIMES = ("timestamp", "time", "time_unix_nano", "timeUnixNano")
_OF_JAEGER = ("references", "startTime", "duration", "processID", "tags/*/type")
_CONTEXTS = ("context", "spanContext", "_spanContext")
_IN_CONTEXT = tuple(f"{holder}/{key}" for holder in _CONTEXTS for key in (*_TRACE, *_SPAN))
_WHERE = ("", "/spans/*", "/data/*", "/data/spans/*", "/trace/spans/*", "/data/*/spans/*", "/*/*")
_LOST = PathPatterns(  # what is in the spans in another form
    f"{where}/{key}"
    for where in _WHERE
    for key in (*_TRACE[:-1], *_SPAN[:-1], *_PARENT, *_START, *_END, *_IN_CONTEXT, *_OF_JAEGER)
)


def sniff(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    if (spans := _listed(document)) is not None:
        return bool(spans) and all(map(_is_span, spans[:3]))
    return _is_span(document) or _is_attributes(document)


def read_spans(document: Any) -> Iterator[Span]:
    """Raises InvalidRecord."""
    document = require_object(document)
    spans = _listed(document)
    about = {
        key: value for key, value in document.items() if key not in ("spans", "data", "trace", "processes")
    }
    for key in ("data", "trace"):
        held = document.get(key)
        rest = (
            {name: value for name, value in held.items() if name != "spans"} if isinstance(held, dict) else {}
        )
        about |= {key: rest} if rest else {}
    if spans is None:
        is_alone = _is_attributes(document) and not _is_span(document)
        yield _span(_from_attributes(document) if is_alone else document, {}, "")
        return
    if _groups(document) is not None:
        about = {}
    processes = document.get("processes")
    for index, span in enumerate(spans):
        at = f"/spans/{index}"
        yield _span(
            _from_jaeger(require_object(span, pointer=at), processes), about if index == 0 else {}, at
        )


def lost_in_spans(document: Any, spans: list[Span]) -> list[FieldUse]:
    """The fields of a document that are in none of its spans."""
    return lost_fields(document, spans, _LOST)


Gathered = partial(
    SpanGatherer, read_spans=read_spans, lost=lost_in_spans, refusal=otel.nothing_said, pointer="/spans"
)


def _listed(document: dict[str, Any]) -> list[Any] | None:
    """The spans that a document lists; None where it is a span itself."""
    for holder in (document, document.get("data"), document.get("trace")):
        if isinstance(holder, dict) and isinstance(holder.get("spans"), list):
            return list(holder["spans"])
    data = document.get("data")
    if isinstance(data, list) and data and isinstance(data[0], dict):
        if isinstance(data[0].get("spans"), list):  # Jaeger's API answers with traces
            traces = [
                trace for trace in data if isinstance(trace, dict) and isinstance(trace.get("spans"), list)
            ]
            return [_from_jaeger(span, trace.get("processes")) for trace in traces for span in trace["spans"]]
        if _is_span(data[0]):
            return list(data)
    return _groups(document)


def _groups(document: dict[str, Any]) -> list[Any] | None:
    """The spans of an object of lists of spans, such as one by operation."""
    groups = list(document.values())
    is_grouped = bool(groups) and all(
        isinstance(group, list) and group and _is_span(group[0]) for group in groups
    )
    return [span for group in groups for span in group] if is_grouped else None


def _is_attributes(document: dict[str, Any]) -> bool:
    """Whether it is the attributes of a call, or a span with them that has no ids."""
    inner = document.get("attributes")
    return any(name in document for name in _OF_CALLS) or (
        isinstance(inner, dict) and any(name in inner for name in _OF_CALLS)
    )


def _from_attributes(document: dict[str, Any]) -> dict[str, Any]:
    """A span of its own, whose ids are made of what it says."""
    name = hashlib.sha256(json.dumps(document, sort_keys=True).encode("utf-8", "replace")).hexdigest()
    ids = {"trace_id": name[:32], "span_id": name[32:48]}
    if isinstance(document.get("attributes"), dict):
        named = {"name": document["spanName"]} if isinstance(document.get("spanName"), str) else {}
        return ids | named | document
    return ids | {"attributes": document}


def _is_span(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    holder = _context(value)
    names = _SPAN if isinstance(value.get("timestamp"), int) and "traceId" in value else _SPAN[:-1]
    has_ids = any(isinstance(holder.get(key), str) for key in _TRACE) and any(
        isinstance(holder.get(key), str) for key in names
    )
    return has_ids and (
        isinstance(value.get("attributes", value.get("span_attributes")), dict | list)
        or isinstance(value.get("tags"), list | dict)
        or any(key.startswith(_COLUMN) for key in value)
    )


def _context(span: dict[str, Any]) -> dict[str, Any]:
    for key in _CONTEXTS:
        if isinstance(span.get(key), dict):
            return span | span[key]
    return span


def _span(given: dict[str, Any], about: dict[str, Any], at: str) -> Span:
    holder = _context(given)
    trace, identity = _first(holder, _TRACE), _first(holder, _SPAN)
    if not (isinstance(trace, str) and isinstance(identity, str) and trace and identity):
        raise InvalidRecord("a span has a trace_id and a span_id, both as text.", pointer=at)
    parent = _first(given, _PARENT)
    if isinstance(parent, dict):
        parent = _first(parent, _SPAN)
    attributes = _attributes(given)
    known = {key for key in given if key in _KNOWN or key.startswith(_COLUMN)}
    rest = {
        key: value for key, value in given.items() if key not in known and value not in (None, "", [], {})
    }
    for key in _CONTEXTS:
        if isinstance(given.get(key), dict):
            further = {name: value for name, value in given[key].items() if name not in (*_TRACE, *_SPAN)}
            rest |= {key: further} if further else {}
    status = given.get("status")
    code = status.get("code", status.get("status_code")) if isinstance(status, dict) else status
    code = given.get("status_code") or code
    message = given.get("status_message") or (
        (status.get("message") or status.get("description")) if isinstance(status, dict) else None
    )
    parent = hexadecimal_id(parent) if isinstance(parent, str) else ""
    start, end = span_time(_first(given, _START)), span_time(_first(given, _END))
    if not start and isinstance(given.get("timestamp"), int):
        start = given["timestamp"] * 1000  # microseconds, as those of Jaeger
    if not end and isinstance(given.get("duration"), int):
        end = start + given["duration"] * 1000
    times = [value for value in (_first(given, _START), _first(given, _END)) if isinstance(value, str)]
    resource = given.get("resource", given.get("resource_attributes"))
    resource = (
        resource.get("attributes", resource.get("_attributes", resource))
        if isinstance(resource, dict)
        else {}
    )
    is_stored = agent_lightning.is_stored_span(given)
    final = agent_lightning.reward_facts(given, attributes) if is_stored else {}
    found = {
        "trace": agent_lightning.attempt_name(given) if is_stored else hexadecimal_id(trace),
        "id": hexadecimal_id(identity),
        "parent": parent,
        "is_root": not parent,
        "name": str(given.get("name") or given.get("span_name") or given.get("operationName") or ""),
        "start": start,
        "end": end,
        "scope": None,
        "status": "error" if code in (2, "ERROR", "STATUS_CODE_ERROR", "StatusCode.ERROR") else "",
        "resource": plain(resource) if isinstance(resource, dict | list) else {},
        "attributes": attributes,
        "events": _events(given.get("events", given.get("logs"))),
    }
    return (
        found
        | ({"status_message": message} if message else {})
        | ({"rest": rest} if rest else {})
        | ({"times": times} if times else {})
        | ({"code": code} if code not in (None, "") else {})
        | ({"facts": _facts(about)} if about else {})
        | ({"final": final} if final else {})
    )


def _attributes(given: dict[str, Any]) -> dict[str, Any]:
    """As they are given, with the columns of a data frame and the tags of Jaeger."""
    held = given.get("attributes", given.get("span_attributes"))
    if isinstance(held, list):
        held = plain(held)
    found = dict(held) if isinstance(held, dict) else {}
    columns = {key[len(_COLUMN) :]: value for key, value in given.items() if key.startswith(_COLUMN)}
    tags = given.get("tags")
    columns |= tags if isinstance(tags, dict) else {}
    for tag in tags if isinstance(tags, list) else ():
        if isinstance(tag, dict) and isinstance(tag.get("key"), str):
            columns[tag["key"]] = tag.get("value")
    return found | {key: value for key, value in columns.items() if value is not None}


def _events(given: Any) -> list[dict[str, Any]]:
    found = []
    for event in given if isinstance(given, list) else ():
        if isinstance(event, dict):
            attributes = event.get("attributes") or event.get("fields") or {}
            name = event.get("name") or event.get("event_name") or ""
            when = _first(event, _EVENT_TIMES)
            about = {"name": str(name), "attributes": plain(attributes)}
            found.append(about | ({} if when is None else {"time": when}))
    return found


def _from_jaeger(span: dict[str, Any], processes: Any) -> dict[str, Any]:
    """A span of Jaeger names its parent among its references, and its process by an id."""
    references = span.get("references") if isinstance(span, dict) else None
    if not isinstance(references, list) or "traceID" not in span or "parentSpanID" in span:
        return span
    parent = next(
        (
            each.get("spanID")
            for each in references
            if isinstance(each, dict) and each.get("refType") == "CHILD_OF"
        ),
        "",
    )
    process = processes.get(str(span.get("processID"))) if isinstance(processes, dict) else None
    resource = (
        {"service.name": process["serviceName"]}
        if isinstance(process, dict) and "serviceName" in process
        else {}
    )
    start = span.get("startTime")
    nanos = start * 1000 if isinstance(start, int) else 0
    return span | {"parentSpanID": parent or "", "resource": resource, "startTimeUnixNano": nanos}


def _facts(about: dict[str, Any]) -> dict[str, Any]:
    """Of MLflow's `info`: what is known of a trace, such as its tags and its assessments."""
    return {"about": {key: value for key, value in about.items() if value not in (None, "", [], {})}}


def _first(holder: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return next((holder[key] for key in keys if holder.get(key) not in (None, "")), None)
