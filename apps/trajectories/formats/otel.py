"""OpenTelemetry GenAI spans as OTLP JSON: {"resourceSpans": [...]}: a trajectory for each agent of each trace.

An agent is an `invoke_agent` span with what lies under it, down to the next one; what lies under none is the trace's
own. Of its calls of a model, in the order they began, each brings what it was asked that had not been said before, and
what it answered. Results of tools that no later call was told come from their `execute_tool` spans. A sub-agent's
trajectory names its parent.
"""

from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats import otel_messages
from apps.trajectories.formats.otel_messages import Message
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory, clean, from_messages
from workers.schema.decode import require_list, require_object
from workers.schema.messages import build_trajectory, decode_arguments

SIGN = "an object with `resourceSpans`"
_NOWHERE = ("", "0000000000000000")
Span = dict[str, Any]


def sniff(document: Any) -> bool:
    return isinstance(document, dict) and ("resourceSpans" in document or "resource_spans" in document)


def split(document: Any) -> Iterator[tuple[str, Any]]:
    """{"trace", "agent": id of its span or "", "parent", "spans": its own, "resource"} of each agent.

    Raises InvalidRecord where no span is a call of a model whose messages were recorded.
    """
    traces: dict[str, list[Span]] = {}
    for span in spans_of(document):
        traces.setdefault(span["trace"], []).append(span)
    found = False
    for trace, spans in traces.items():
        by_agent: dict[str, list[Span]] = {}
        known = {span["id"]: span for span in spans}
        for span in sorted(spans, key=lambda one: one["start"]):
            by_agent.setdefault(_agent_of(span, known), []).append(span)
        for agent, own in by_agent.items():
            if not any(otel_messages.answered(span) for span in own):
                continue
            found = True
            above = known.get(known[agent]["parent"]) if agent else None
            yield (
                "",
                {
                    "trace": trace,
                    "agent": agent,
                    "parent": _agent_of(above, known) if above else "",
                    "about": known[agent]["attributes"] if agent else {},
                    "spans": own,
                },
            )
    if not found:
        raise InvalidRecord(
            "no span is a call of a model with what it answered: let your instrumentation record the content of "
            "messages, for many by OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true.",
            pointer="/resourceSpans",
        )


def spans_of(document: Any) -> Iterator[Span]:
    """Spans with their attributes as plain values: {trace, id, parent, name, start, status, attributes, events}."""
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


def read(document: Any) -> Trajectory:
    document, _ = clean(require_object(document))
    spans: list[Span] = require_list(document.get("spans"), pointer="/spans")
    about: dict[str, Any] = document.get("about") or {}
    said = _conversation(spans)
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
        from_messages(said, pointer="/spans"),
        Task(id=""),
        pointer="/spans",
        id=f"{document['trace']}/{document['agent']}".rstrip("/"),
        agent=str(name),
        agent_version=str(about.get("gen_ai.agent.version") or ""),
        metadata={key: value for key, value in metadata.items() if value},
    )


def _agent_of(span: Span, known: dict[str, Span]) -> str:
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
    said: list[Message] = []
    results = {}
    for span in spans:
        tool = otel_messages.result_of(span)
        if tool is not None:
            results[tool["tool_call_id"]] = tool
            continue
        asked, answer = otel_messages.asked_of(span), otel_messages.answered(span)
        if answer:
            said += [*_new(asked, said), *answer]
    answered = {message.get("tool_call_id") for message in said if message["role"] == "tool"}
    out: list[Message] = []
    for message in said:
        out.append(message)
        called = (call["id"] for call in message.get("tool_calls") or ())
        out += [results[name] for name in called if name in results and name not in answered]
    return out


def _new(asked: list[Message], said: list[Message]) -> list[Message]:
    """What of a call's input had not been said: all after the longest beginning they share; of what does not begin
    alike (an agent that forgets, or is told anew), what was never said."""
    shared = 0
    while shared < min(len(asked), len(said)) and _same(asked[shared], said[shared]):
        shared += 1
    if shared == len(said):
        return asked[shared:]
    return [one for one in asked[shared:] if not any(_same(one, other) for other in said)]


def _same(one: Message, other: Message) -> bool:
    """Instrumentations tell of a message less when it is asked with than when it was answered."""
    plain = ("role", "content", "tool_call_id")
    if any((one.get(key) or None) != (other.get(key) or None) for key in plain):
        return False
    return _called(one) == _called(other)


def _called(message: Message) -> list[Any]:
    calls = message.get("tool_calls") or ()
    return [
        (call["id"], call["function"]["name"], decode_arguments(call["function"]["arguments"])[0])
        for call in calls
    ]


def _span(span: dict[str, Any], resource: dict[str, Any], at: str) -> Span:
    trace, identity = span.get("traceId") or span.get("trace_id"), span.get("spanId") or span.get("span_id")
    if not isinstance(trace, str) or not isinstance(identity, str):
        raise InvalidRecord("a span has a traceId and a spanId, both text.", pointer=at)
    parent = span.get("parentSpanId") or span.get("parent_span_id") or ""
    code = require_object(span.get("status") or {}, pointer=f"{at}/status").get("code")
    start = span.get("startTimeUnixNano") or span.get("start_time_unix_nano") or 0
    events = span.get("events") or []
    return {
        "trace": trace,
        "id": identity,
        "parent": "" if parent in _NOWHERE else str(parent),
        "name": str(span.get("name") or ""),
        "start": int(start) if str(start).isdecimal() else 0,
        "status": "error" if code in (2, "STATUS_CODE_ERROR") else "",
        "resource": resource,
        "attributes": otel_messages.plain(span.get("attributes")),
        "events": [
            {"name": str(one.get("name")), "attributes": otel_messages.plain(one.get("attributes"))}
            for one in require_list(events, pointer=f"{at}/events")
            if isinstance(one, dict)
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
