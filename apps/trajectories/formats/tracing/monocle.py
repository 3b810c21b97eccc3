"""Monocle's spans (Okahu): `span.type` says what a span is, and its events `data.input` and `data.output` hold what
went in and came out: JSON in text such as {"user": "..."}, {"ai": {"name", "args", "id"}} and {"call_id", "output"}."""

import ast
from typing import Any

from apps.trajectories.formats.tracing.attributes import flat_attributes
from apps.trajectories.formats.tracing.call_content import as_text, decoded
from apps.trajectories.formats.tracing.span_content import SpanContent, SpanKind, token_counts, tool_result
from workers.schema.message_shapes import ROLES

Message = dict[str, Any]
KIND = "span.type"
_KINDS: dict[str, SpanKind] = {
    "inference": "model", "inference.framework": "model", "inference.modelapi": "other", "agentic.turn": "chain",
    "agentic.tool.invocation": "tool", "agentic.mcp.invocation": "other", "agentic.invocation": "agent",
    "agentic.request": "chain", "workflow": "chain", "generic": "chain", "custom": "other", "retrieval": "other",
    "embedding": "other", "http.process": "other", "http.send": "other",
}  # fmt: skip
_LONGEST = 2**16  # characters of a call that is written as Python writes it


def content(span: dict[str, Any]) -> SpanContent | None:
    """None where it is no span of Monocle."""
    given = flat_attributes(span["attributes"])
    kind = given.get(KIND)
    if not isinstance(kind, str) or not any(name.startswith("monocle") for name in given):
        return None
    events = {event["name"]: event["attributes"] for event in span["events"]}
    gave = events.get("data.output", {})
    answered = gave.get("response", gave.get("output"))
    asked = events.get("data.input", {}).get("input")
    named = _entities(given)
    found = SpanContent(
        kind=_KINDS.get(kind, "chain"),
        usage=token_counts(events.get("metadata")),
        conversation=_session(given),
    )
    if found.kind == "tool":
        found.arguments = _literal(
            decoded(asked[0] if isinstance(asked, list) and len(asked) == 1 else asked)
        )
        found.result = tool_result(answered, name=_name_of(named, "tool"), call_id=None)
    elif found.kind != "other":
        found.asked, found.answer = _asked(asked), _answered(answered)
        found.agent = _name_of(named, "agent") if found.kind == "agent" else ""
        found.model = _name_of(named, "model")
    return found


def _session(given: dict[str, Any]) -> str:
    value = given.get("scope.agentic.session")
    return value if isinstance(value, str) else ""


def _entities(given: dict[str, Any]) -> list[dict[str, Any]]:
    """What a span is about: `entity.1.name`, or a list `entity`."""
    listed = given.get("entity")
    if isinstance(listed, list):
        return [each for each in listed if isinstance(each, dict)]
    found: dict[str, dict[str, Any]] = {}
    for name, value in given.items():
        pieces = name.split(".", 2)
        if pieces[0] == "entity" and len(pieces) == 3:
            found.setdefault(pieces[1], {})[pieces[2]] = value
    return list(found.values())


def _name_of(entities: list[dict[str, Any]], kind: str) -> str:
    for entity in entities:
        if str(entity.get("type")).split(".")[0] == kind and isinstance(entity.get("name"), str):
            return str(entity["name"])
    return ""


def _asked(value: Any) -> list[Message]:
    found: list[Message] = []
    for each in value if isinstance(value, list) else [value]:
        found += _messages(each, "user")
    return found


def _answered(value: Any) -> list[Message]:
    return [message for message in _messages(value, "assistant") if message["role"] == "assistant"]


def _messages(value: Any, role: str) -> list[Message]:
    """role: of text that does not say whose it is."""
    inner = _literal(decoded(value))
    if inner in (None, "", [], {}):
        return []
    if isinstance(inner, dict):
        if isinstance(inner.get("tools"), list) and len(inner) == 1:
            return [_calling([_call(call) for call in inner["tools"]])]
        if "tool_function" in inner:
            return [_calling([_call(inner)])]
        if "call_id" in inner and "output" in inner:
            return [{"role": "tool", "tool_call_id": inner["call_id"], "content": _text(inner["output"])}]
        if len(inner) == 1 and (known := ROLES.get(str(next(iter(inner))).lower())):
            return _spoken_messages(known, next(iter(inner.values())))
    return [{"role": role, "content": _text(value)}]


def _spoken_messages(role: str, value: Any) -> list[Message]:
    calls = _literal(decoded(value)) if role == "assistant" else None
    calls = calls if isinstance(calls, list) else [calls]
    if calls and all(isinstance(call, dict) and isinstance(call.get("name"), str) for call in calls):
        return [_calling([_call(call) for call in calls])]
    return [{"role": role, "content": text}] if (text := _words(value)) or role == "assistant" else []


def _words(value: Any) -> str:
    """Text, also of parts that are written as JSON."""
    parts = decoded(value)
    if isinstance(parts, list) and parts and all(isinstance(part, dict) and "text" in part for part in parts):
        return "\n".join(_text(part["text"]) for part in parts)
    return _text(value)


def _calling(calls: list[Message]) -> Message:
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _call(call: Any) -> Message:
    given = call if isinstance(call, dict) else {}

    def first(*names: str) -> Any:
        return next((given[name] for name in names if given.get(name) is not None), None)

    arguments = first("tool_arguments", "args", "input", "arguments")
    return {
        "id": first("tool_id", "call_id", "id", "toolUseId"),
        "type": "function",
        "function": {
            "name": first("tool_name", "tool_function", "name") or "unnamed",
            "arguments": arguments if isinstance(arguments, dict) else _text(arguments),
        },
    }


def _literal(value: Any) -> Any:
    """An object or a list that is written as Python writes it."""
    if not isinstance(value, str) or value[:1] not in "{[" or len(value) > _LONGEST:
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return value


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else as_text(value)
