"""What was said in a GenAI span, by every generation of the conventions, as OpenAI messages.

Now: the attributes `gen_ai.input.messages`, `gen_ai.output.messages` and `gen_ai.system_instructions`, JSON of
[{"role", "parts": [{"type": "text" | "tool_call" | "tool_call_response" | "reasoning" | ...}]}]. Until 1.36: events of
the span, `gen_ai.user.message` and its like, and `gen_ai.choice`. Before and next to: `gen_ai.prompt.0.content`,
`gen_ai.completion.0.content`, or the events `gen_ai.content.prompt` and `gen_ai.content.completion`.
"""

import json
from collections.abc import Iterable
from typing import Any

from apps.core.number_parsing import signed_number
from workers.schema.decode import clean
from workers.schema.patterns import WORD, TextPattern

Message = dict[str, Any]
_INDEXED = TextPattern(r"gen_ai\.(prompt|completion)\.(\d{1,4})\.(.+)")
_TOOL_CALL = TextPattern(rf"tool_calls\.(\d{{1,4}})\.([{WORD}]+)")
_EVENT = TextPattern(r"gen_ai\.(system|user|assistant|tool)\.message")
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_OTHER_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "function": "tool"}
_DEEPEST = 32
_MEDIA = ("blob", "uri", "file", "image", "image_url", "input_image", "audio", "video")


def plain(attributes: Any, depth: int = 0) -> dict[str, Any]:
    """OTLP's [{"key", "value": {"stringValue": ...}}] as an object; an object stays one."""
    if isinstance(attributes, dict):
        return attributes
    found = {}
    for attribute in attributes if isinstance(attributes, list) else []:
        if isinstance(attribute, dict) and isinstance(attribute.get("key"), str):
            found[attribute["key"]] = _value(attribute.get("value"), depth)
    return found


def input_messages(span: dict[str, Any]) -> list[Message]:
    """What a model was asked with."""
    given = span["attributes"]
    system = _texts(_json(given.get("gen_ai.system_instructions")))
    before: list[Message] = [{"role": "system", "content": system}] if system else []
    if (messages := _json(given.get("gen_ai.input.messages"))) is not None:
        return before + _of_parts(messages)
    content = [
        _of_event(kind[1], event["attributes"])
        for event in span["events"]
        if (kind := _EVENT.fullmatch(event["name"]))
    ]
    return before + (content or _indexed(given, "prompt") or _content(span, "prompt"))


def output_messages(span: dict[str, Any]) -> list[Message]:
    """The answer: its first choice. Empty without recorded content, or where the span is no call of a model."""
    given = span["attributes"]
    if given.get("gen_ai.operation.name") in ("invoke_agent", "create_agent", "execute_tool", "embeddings"):
        return []
    if (messages := _json(given.get("gen_ai.output.messages"))) is not None:
        first = _of_parts(messages[:1] if isinstance(messages, list) else [])
        return first if first and first[0]["role"] == "assistant" else []
    choices = [event["attributes"] for event in span["events"] if event["name"] == "gen_ai.choice"]
    if choices:
        content = _json(choices[0].get("message")) or choices[0]
        return [_of_event("assistant", content)] if isinstance(content, dict) else []
    found = _indexed(given, "completion") or _content(span, "completion")
    return [message | {"role": "assistant"} for message in found[:1]]


def tool_result(span: dict[str, Any]) -> Message | None:
    """What a tool gave back, where the span is the running of one."""
    given = span["attributes"]
    if given.get("gen_ai.operation.name") != "execute_tool":
        return None
    result = given.get("gen_ai.tool.call.result", given.get("gen_ai.tool.result"))
    identity = given.get("gen_ai.tool.call.id")
    if result is None and identity is None:
        return None
    return {
        "role": "tool",
        "tool_call_id": str(identity) if identity is not None else None,
        "content": None if result is None else _as_text(result),
    } | (
        {"name": str(given["gen_ai.tool.name"])} if identity is None and given.get("gen_ai.tool.name") else {}
    )


def _of_parts(messages: Any) -> list[Message]:
    found: list[Message] = []
    for message in messages if isinstance(messages, list) else []:
        if not isinstance(message, dict):
            continue
        given = message.get("parts")
        parts = [part for part in given if isinstance(part, dict)] if isinstance(given, list) else []
        if not parts and message.get("content") is not None:
            parts = [{"type": "text", "content": _as_text(message["content"])}]
        results: list[Message] = [
            {
                "role": "tool",
                "tool_call_id": str(part["id"]) if part.get("id") is not None else None,
                "content": _as_text(_result_of(part)),
            }
            | ({"name": part["name"]} if part.get("id") is None and isinstance(part.get("name"), str) else {})
            for part in parts
            if _is_result(part)
        ]
        rest = [part for part in parts if not _is_result(part)]
        if not rest:
            found += results
            continue
        message_fields: Message = {"role": _role(message.get("role")), "content": _content_of(rest)}
        thought = "\n".join(
            _as_text(part.get("content")) for part in rest if part.get("type") in ("reasoning", "thinking")
        )
        calls = [
            _call(part.get("id"), part.get("name") or part.get("type"), _arguments_of(part))
            for part in rest
            if _is_call(part)
        ]
        if thought:
            message_fields["reasoning_content"] = thought
        message_fields |= {"tool_calls": calls} if calls else {}
        # Results of the model's own tools stand in its message, behind their calls; others before what is said next.
        found += [message_fields, *results] if calls else [*results, message_fields]
    return found


def _is_result(part: dict[str, Any]) -> bool:
    return str(part.get("type")).endswith("tool_call_response")  # also `server_tool_call_response`


def _is_call(part: dict[str, Any]) -> bool:
    return str(part.get("type")).endswith("tool_call")


def _result_of(part: dict[str, Any]) -> Any:
    return next(
        (part[key] for key in ("response", "result", "server_tool_call_response") if key in part), None
    )


def _arguments_of(part: dict[str, Any]) -> Any:
    return part.get("arguments", part.get("server_tool_call"))


def _content_of(parts: list[dict[str, Any]]) -> Any:
    """Text; or a list of parts where there are pictures, clips or files among them."""
    media = [part for part in parts if part.get("type") in _MEDIA]
    if not media:
        return _texts(parts) or None
    texts = ("text", None)
    return [
        part if part in media else {"type": "text", "text": _as_text(part.get("content", part.get("text")))}
        for part in parts
        if part in media or part.get("type") in texts
    ]


def _texts(parts: Any) -> str:
    if isinstance(parts, str):
        return parts
    return "\n".join(
        _as_text(part.get("content", part.get("text")))
        for part in (parts if isinstance(parts, list) else [])
        if isinstance(part, dict) and part.get("type", "text") == "text"
    )


def _of_event(role: str, given: dict[str, Any]) -> Message:
    body = _json(given.get("body")) or given
    content = body.get("content")
    message_fields: Message = {
        "role": _role(body.get("role") or role),
        "content": None if content is None else _as_text(content),
    }
    if message_fields["role"] == "tool":
        return message_fields | {"tool_call_id": str(body.get("id"))}
    calls = [
        _call(
            call.get("id"),
            (call.get("function") or call).get("name"),
            (call.get("function") or call).get("arguments"),
        )
        for call in _json(body.get("tool_calls")) or []
        if isinstance(call, dict)
    ]
    return message_fields | ({"tool_calls": calls} if calls else {})


def _indexed(given: dict[str, Any], kind: str) -> list[Message]:
    """Of attributes with numbers in their names."""
    by_place: dict[int, dict[str, Any]] = {}
    for key, value in given.items():
        if (match := _INDEXED.fullmatch(key)) and match[1] == kind:
            by_place.setdefault(int(match[2]), {})[match[3]] = value
    found = []
    for _, fields in sorted(by_place.items()):
        calls: dict[str, dict[str, Any]] = {}
        for key, value in fields.items():
            if match := _TOOL_CALL.fullmatch(key):
                calls.setdefault(match[1].zfill(4), {})[match[2]] = value
        content = fields.get("content")
        message_fields: Message = {
            "role": _role(fields.get("role")),
            "content": None if content is None else _as_text(content),
        }
        if message_fields["role"] == "tool":
            message_fields["tool_call_id"] = str(fields.get("tool_call_id"))
        if calls:
            message_fields["tool_calls"] = [
                _call(call.get("id"), call.get("name"), call.get("arguments"))
                for _, call in sorted(calls.items())
            ]
        found.append(message_fields)
    return found


def _content(span: dict[str, Any], kind: str) -> list[Message]:
    """Of one event that holds all of it, as JSON or as text."""
    event = next((event for event in span["events"] if event["name"] == f"gen_ai.content.{kind}"), None)
    if event is None:
        return []
    given = event["attributes"].get(f"gen_ai.{kind}")
    decoded = _json(given)
    if isinstance(decoded, list):
        return [_of_event("user", message) for message in decoded if isinstance(message, dict)]
    return [{"role": "user", "content": _as_text(given)}] if given is not None else []


def _call(identity: Any, name: Any, arguments: Any) -> dict[str, Any]:
    text = (
        arguments
        if isinstance(arguments, str | dict)
        else json.dumps(arguments if arguments is not None else {})
    )
    return {
        "id": str(identity) if identity is not None else None,
        "type": "function",
        "function": {"name": str(name), "arguments": text},
    }


def _role(role: Any) -> str:
    name = str(role or "user").lower()
    return _ROLES.get(name) or _OTHER_ROLES.get(name) or "user"


def _json(value: Any) -> Any:
    """What JSON text says; what is decoded already; None for anything else."""
    if not isinstance(value, str):
        return value if isinstance(value, list | dict) else None
    try:
        return clean(json.loads(value))[0]
    except (ValueError, RecursionError):
        return None


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _value(value: Any, depth: int) -> Any:
    if not isinstance(value, dict) or depth > _DEEPEST:
        return None
    for key, inner in value.items():
        if key in ("intValue", "int_value"):
            return signed_number(inner)
        if key in ("arrayValue", "array_value"):
            return [_value(each, depth + 1) for each in _values(inner)]
        if key in ("kvlistValue", "kvlist_value"):
            return plain(_values(inner), depth + 1)
        return inner
    return None


def _values(holder: Any) -> Iterable[Any]:
    values = holder.get("values") if isinstance(holder, dict) else None
    return values if isinstance(values, list) else []
