"""OTLP JSON as plain spans: attributes as objects, times as nanoseconds; and by which convention a span was written."""

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from apps.core.number_parsing import whole_number
from apps.trajectories.formats.tracing import otel_messages
from workers.errors import InvalidRecord
from workers.schema.decode import require_list, require_object
from workers.schema.patterns import TextPattern

Span = dict[str, Any]
_NOWHERE = ("", "0000000000000000")
_NAME = TextPattern(r"[0-9A-Za-z_-]{1,64}")
_MOST_SECONDS = 10**11  # a time below is in seconds (before the year 5138), above in nanoseconds
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_REMOTE = 0x200  # SpanFlags: the parent is in another process
_READ = (  # beginnings of the names of attributes of conventions that are read
    *(
        "gen_ai.",
        "llm.",
        "openinference.",
        "ai.",
        "traceloop.",
        "langfuse.",
        "langsmith.",
        "mlflow.",
        "pydantic_ai.",
    ),
    *(
        "monocle_apptrace.",
        "gcp.vertex.agent.",
        "genkit:",
        "input.value",
        "output.value",
        "input.mime",
        "output.mime",
    ),
)
_READ_NAMES = (
    "events",
    "all_messages_events",
    "tool_response",
    "tool_arguments",
    "request_data",
    "response_data",
)
_NOT_READ = (
    ("lk.", "LiveKit Agents"),
    ("haystack.", "Haystack"),
    ("weave.", "Weave"),
    ("braintrust.", "Braintrust"),
)


def convention(span: Span) -> str:
    """The convention of a span that is known and not read; empty for any other."""
    names = span["attributes"]
    if any(name.startswith(_READ) for name in names):
        return ""
    return next(
        (title for prefix, title in _NOT_READ if any(name.startswith(prefix) for name in names)),
        "",
    )


def packed(span: Span) -> bytes:
    """As `unpacked` reads it. Raises InvalidRecord for numbers that JSON has not."""
    try:
        return json.dumps(span, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
    except ValueError:
        raise InvalidRecord("a span has a number that is not finite.", pointer="/resourceSpans") from None


def unpacked(raw: bytes) -> Span:
    span: Span = json.loads(raw.decode("utf-8", "surrogatepass"))
    return span


def read_spans(document: Any) -> Iterator[Span]:
    """Spans with their attributes as plain values: {trace, id, parent, is_root, name, start, status, resource,
    attributes, events}. Raises InvalidRecord."""
    document = require_object(document)
    key = "resourceSpans" if "resourceSpans" in document else "resource_spans"
    for number, resource in enumerate(require_list(document.get(key), pointer=f"/{key}")):
        resource = require_object(resource, pointer=f"/{key}/{number}")
        given = require_object(resource.get("resource") or {}, pointer=f"/{key}/{number}/resource")
        about = otel_messages.plain(given.get("attributes"))
        scopes = resource.get("scopeSpans") or resource.get("scope_spans") or []
        for place, scope in enumerate(require_list(scopes, pointer=f"/{key}/{number}/scopeSpans")):
            at = f"/{key}/{number}/scopeSpans/{place}/spans"
            scope = require_object(scope)
            library = scope.get("scope")
            for index, span in enumerate(require_list(scope.get("spans") or [], pointer=at)):
                at_span = f"{at}/{index}"
                yield _span(require_object(span, pointer=at_span), about, library, at_span)


def tells(span: Span) -> bool:
    """Whether anything of it is about a model, an agent or a tool."""
    given = [span["attributes"], *(event["attributes"] for event in span["events"])]
    return (
        any(name.startswith(_READ) for attributes in given for name in attributes)
        or any(name in span["attributes"] for name in _READ_NAMES)
        or any(event["name"].startswith("gen_ai.") for event in span["events"])
        or bool(convention(span))
    )


def _span(span: dict[str, Any], resource: dict[str, Any], scope: Any, at: str) -> Span:
    trace, identity = span.get("traceId") or span.get("trace_id"), span.get("spanId") or span.get("span_id")
    if not (
        isinstance(trace, str)
        and isinstance(identity, str)
        and _NAME.fullmatch(trace)
        and _NAME.fullmatch(identity)
    ):
        raise InvalidRecord(
            "a span has a traceId and a spanId, both of letters and digits, at most 64.", pointer=at
        )
    parent = span.get("parentSpanId") or span.get("parent_span_id") or ""
    code = require_object(span.get("status") or {}, pointer=f"{at}/status").get("code")
    start = span.get("startTimeUnixNano") or span.get("start_time_unix_nano") or 0
    end = span.get("endTimeUnixNano") or span.get("end_time_unix_nano") or 0
    events, flags = span.get("events") or [], span.get("flags")
    return (
        {
            "trace": trace,
            "id": identity,
            "parent": "" if parent in _NOWHERE else str(parent)[:64],
            "is_root": parent in _NOWHERE or bool(flags & _REMOTE if isinstance(flags, int) else 0),
            "name": str(span.get("name") or ""),
            "start": nanoseconds(start),
            "end": nanoseconds(end),
            "scope": scope,
            "status": "error" if code in (2, "STATUS_CODE_ERROR") else "",
            "resource": resource,
            "attributes": otel_messages.plain(span.get("attributes")),
            "events": [
                {"name": str(event.get("name")), "attributes": otel_messages.plain(event.get("attributes"))}
                for event in require_list(events, pointer=f"{at}/events")
                if isinstance(event, dict)
            ],
        }
        | ({"links": span["links"]} if span.get("links") else {})
        | ({"times": [start, end]} if whole_number(start) is None or whole_number(end) is None else {})
        | _status_message(span)
    )


def nanoseconds(value: Any) -> int:
    """A time as OTLP has it; seconds, or a date and time of ISO 8601, as some exporters write; 0 for none."""
    if (number := whole_number(value)) is not None:
        return number
    try:
        seconds = float(value) if isinstance(value, str | float) else math.nan
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds) and isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return 0
        since = moment.replace(tzinfo=moment.tzinfo or UTC) - _EPOCH
        return max(0, since // timedelta(microseconds=1) * 1000)
    if not 0 <= seconds < 2**63:
        return 0
    return int(seconds * 1e9) if seconds < _MOST_SECONDS else int(seconds)


def _status_message(span: dict[str, Any]) -> dict[str, Any]:
    message = span["status"].get("message") if isinstance(span.get("status"), dict) else None
    return {"status_message": message} if message else {}
