"""OpenTelemetry GenAI spans as OTLP JSON: {"resourceSpans": [...]}: a trajectory for each agent of each trace.

An agent is an `invoke_agent` span with what lies under it, down to the next one; what lies under none is the trace's
own. Of its calls of a model, in the order they began, each brings what it was asked that had not been said before, and
what it answered. Results of tools that no later call was told come from their `execute_tool` spans. A sub-agent's
trajectory names its parent. Spans of one trace may stand in several documents, as exporters write them.
"""

import json
from collections.abc import Iterable, Iterator
from tempfile import SpooledTemporaryFile
from typing import Any

from apps.core.number_parsing import whole_number
from apps.trajectories.formats import otel_messages
from apps.trajectories.formats.otel_messages import Message
from apps.trajectories.formats.record import Record, encoded, too_large
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory, clean, from_messages
from workers.schema.decode import require_list, require_object
from workers.schema.messages import build_trajectory, decode_arguments
from workers.schema.patterns import TextPattern

SIGN = "an object with `resourceSpans`"
NOTHING_SAID = (
    "no span is a call of a model with what it answered: let your instrumentation record the content of "
    "messages, for many by OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true."
)
_NOWHERE = ("", "0000000000000000")
_NAME = TextPattern(r"[0-9A-Za-z_-]{1,64}")
_IN_MEMORY = 64 * 2**20
_REMOTE = 0x200  # SpanFlags: the parent is in another process
Span = dict[str, Any]


def sniff(document: Any) -> bool:
    return isinstance(document, dict) and ("resourceSpans" in document or "resource_spans" in document)


class Gathered:
    """The spans of many documents until there are no more, then a record for each run. limit: bytes of a trace."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 closed by __del__
        self._first: int | None = None
        self._traces: dict[str, list[tuple[int, int]]] = {}  # where its spans lie
        self._lines: dict[str, int] = {}

    def add(self, record: Record) -> None:
        """Raises InvalidRecord."""
        self._first = record.line if self._first is None else self._first
        for span in read_spans(record.document):
            raw = packed(span)
            self._lines.setdefault(span["trace"], record.line)
            self._traces.setdefault(span["trace"], []).append((self._file.tell(), len(raw)))
            self._file.write(raw)

    def records(self) -> Iterator[Record]:
        has_messages = False
        for trace, places in self._traces.items():
            line = self._lines[trace]
            if sum(length for _, length in places) > self._limit:
                yield Record(line, error=too_large(self._limit))
                continue
            for run in group_by_agent(self._span(*place) for place in places):
                has_messages = True
                raw = encoded(run)
                yield (
                    Record(line, raw, run)
                    if len(raw) <= self._limit
                    else Record(line, error=too_large(self._limit))
                )
        if self._first is not None and not has_messages:
            yield Record(self._first, error=InvalidRecord(NOTHING_SAID, pointer="/resourceSpans"))

    def __del__(self) -> None:
        self._file.close()

    def _span(self, offset: int, length: int) -> Span:
        self._file.seek(offset)
        return unpacked(self._file.read(length))


def packed(span: Span) -> bytes:
    """As `unpacked` reads it. Raises InvalidRecord for numbers that JSON has not."""
    try:
        return json.dumps(span, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
    except ValueError:
        raise InvalidRecord("a span has a number that is not finite.", pointer="/resourceSpans") from None


def unpacked(raw: bytes) -> Span:
    span: Span = json.loads(raw.decode("utf-8", "surrogatepass"))
    return span


def group_by_agent(spans: Iterable[Span]) -> Iterator[dict[str, Any]]:
    """What `read` reads of each agent of a trace: {"trace", "agent": id of its span or "", "parent", "about", "spans"}.

    A span that came twice counts once, as it came last. None where no span is a call of a model that was recorded.
    """
    known = {span["id"]: span for span in spans}
    by_agent: dict[str, list[Span]] = {}
    for span in sorted(known.values(), key=lambda item: item["start"]):
        by_agent.setdefault(_find_agent_span(span, known), []).append(span)
    for agent, own in by_agent.items():
        if not any(otel_messages.output_messages(span) for span in own):
            continue
        above = known.get(known[agent]["parent"]) if agent else None
        yield {
            "trace": own[0]["trace"],
            "agent": agent,
            "parent": _find_agent_span(above, known) if above else "",
            "about": known[agent]["attributes"] if agent else {},
            "spans": own,
        }


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
            for index, span in enumerate(require_list(require_object(scope).get("spans") or [], pointer=at)):
                yield _span(require_object(span, pointer=f"{at}/{index}"), about, f"{at}/{index}")


def tells(span: Span) -> bool:
    """Whether anything of it is about a model, an agent or a tool."""
    given = [span["attributes"], *(event["attributes"] for event in span["events"])]
    return any(name.startswith("gen_ai.") for attribute in given for name in attribute) or any(
        event["name"].startswith("gen_ai.") for event in span["events"]
    )


def read(document: Any) -> Trajectory:
    document, _ = clean(require_object(document))
    spans: list[Span] = require_list(document.get("spans"), pointer="/spans")
    about: dict[str, Any] = document.get("about") or {}
    messages = _conversation(spans)
    model = next((name for span in spans if (name := span["attributes"].get("gen_ai.request.model"))), "")
    conversation = next(
        (name for span in spans if (name := span["attributes"].get("gen_ai.conversation.id"))), None
    )
    metadata = {
        "trace": document["trace"],
        "span": document["agent"],
        "resource": spans[0]["resource"],
        "usage": _usage(spans),
        "errors": [span["name"] for span in spans if span["status"] == "error"],
    }
    if document.get("parent"):
        metadata["parent"] = f"{document['trace']}/{document['parent']}"
    if conversation is not None:
        metadata["conversation"] = conversation
    name = about.get("gen_ai.agent.name") or spans[0]["resource"].get("service.name") or model
    return build_trajectory(
        from_messages(messages, pointer="/spans"),
        Task(id=""),
        pointer="/spans",
        id=f"{document['trace']}/{document['agent']}".rstrip("/"),
        agent=str(name),
        agent_version=str(about.get("gen_ai.agent.version") or ""),
        metadata={key: value for key, value in metadata.items() if value},
    )


def _find_agent_span(span: Span, known: dict[str, Span]) -> str:
    """The id of the span of the agent that a span is part of; its own where it is an agent's; empty for none."""
    seen = set()
    while span["id"] not in seen:
        seen.add(span["id"])
        if span["attributes"].get("gen_ai.operation.name") == "invoke_agent":
            return str(span["id"])
        if (above := known.get(span["parent"])) is None:
            return ""
        span = above
    return ""  # spans that are each other's parents


def _conversation(spans: list[Span]) -> list[Message]:
    messages: list[Message] = []
    results = {}
    for span in spans:
        tool = otel_messages.tool_result(span)
        if tool is not None:
            results[tool["tool_call_id"]] = tool
            continue
        asked, answer = otel_messages.input_messages(span), otel_messages.output_messages(span)
        if answer:
            messages += [*_new_messages(asked, messages), *answer]
    answered = {message.get("tool_call_id") for message in messages if message["role"] == "tool"}
    out: list[Message] = []
    for message in messages:
        out.append(message)
        called = (call["id"] for call in message.get("tool_calls") or ())
        out += [results[name] for name in called if name in results and name not in answered]
    return out


def _new_messages(asked: list[Message], messages: list[Message]) -> list[Message]:
    """The new messages of a call's input: everything after the longest common prefix; if the inputs diverge (an agent
    that drops or rewrites its context), every message not seen before."""
    shared = 0
    while shared < min(len(asked), len(messages)) and _is_same_message(asked[shared], messages[shared]):
        shared += 1
    if shared == len(messages):
        return asked[shared:]
    return [
        message
        for message in asked[shared:]
        if not any(_is_same_message(message, other) for other in messages)
    ]


def _is_same_message(message: Message, other: Message) -> bool:
    """Instrumentations tell of a message less when it is asked with than when it was answered."""
    plain = ("role", "content", "tool_call_id")
    if any((message.get(key) or None) != (other.get(key) or None) for key in plain):
        return False
    return _called(message) == _called(other)


def _called(message: Message) -> list[Any]:
    calls = message.get("tool_calls") or ()
    return [
        (call["id"], call["function"]["name"], decode_arguments(call["function"]["arguments"])[0])
        for call in calls
    ]


def _span(span: dict[str, Any], resource: dict[str, Any], at: str) -> Span:
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
    events, flags = span.get("events") or [], span.get("flags")
    return {
        "trace": trace,
        "id": identity,
        "parent": "" if parent in _NOWHERE else str(parent)[:64],
        "is_root": parent in _NOWHERE or bool(flags & _REMOTE if isinstance(flags, int) else 0),
        "name": str(span.get("name") or ""),
        "start": whole_number(start) or 0,
        "status": "error" if code in (2, "STATUS_CODE_ERROR") else "",
        "resource": resource,
        "attributes": otel_messages.plain(span.get("attributes")),
        "events": [
            {"name": str(event.get("name")), "attributes": otel_messages.plain(event.get("attributes"))}
            for event in require_list(events, pointer=f"{at}/events")
            if isinstance(event, dict)
        ],
    }


def _usage(spans: list[Span]) -> dict[str, int]:
    """Tokens of all calls together."""
    found: dict[str, int] = {}
    for span in spans:
        for kind in ("input_tokens", "output_tokens"):
            value = span["attributes"].get(f"gen_ai.usage.{kind}")
            if isinstance(value, int):
                found[kind] = found.get(kind, 0) + value
    return found
