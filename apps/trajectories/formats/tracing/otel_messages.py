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
from workers.schema.message_parts import block_type, is_split, result_content
from workers.schema.message_shapes import chat_messages
from workers.schema.patterns import WORD, TextPattern

Message = dict[str, Any]
_INDEXED = TextPattern(
    r"(?:gen_ai|llm)\.(prompt|completion)s?\.(\d{1,4})\.(.+)"
)  # `llm.` by OpenLLMetry once
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
        return before + part_messages(messages)
    content = [
        message
        for event in span["events"]
        if (kind := _EVENT.fullmatch(event["name"]))
        for message in event_messages(kind[1], event["attributes"])
    ]
    return before + (content or _indexed(given, "prompt") or _content(span, "prompt"))


def output_messages(span: dict[str, Any]) -> list[Message]:
    """The answer: its first choice. Empty without recorded content."""
    given = span["attributes"]
    if (messages := _json(given.get("gen_ai.output.messages"))) is not None:
        if isinstance(messages, dict):  # one content of Gemini, whose role may be missing
            messages = [{"role": "assistant"} | messages]
        first = part_messages(messages[:1])
        return first if first and first[0]["role"] == "assistant" else []
    choices = [event["attributes"] for event in span["events"] if event["name"] == "gen_ai.choice"]
    if choices:
        content = _json(choices[0].get("message")) or choices[0]
        return event_messages("assistant", content if isinstance(content, dict) else {"content": content})
    found = _indexed(given, "completion") or _content(span, "completion")
    return [message | {"role": "assistant"} for message in found[:1]]


def part_messages(messages: Any) -> list[Message]:
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


def event_messages(role: str, given: dict[str, Any]) -> list[Message]:
    """Of an event: one message, or several where its content is the results of several tools. role: by the event's
    name, where its body has none."""
    body = _json(given.get("body")) or given
    body = body if isinstance(body, dict) else {"content": body}
    role = _role(body.get("role") or role)
    blocks = _json(body.get("content"))
    if isinstance(blocks, list) and blocks and all(map(_is_block, blocks)):
        return _of_blocks(role, blocks, body)
    content = body.get("content")
    message_fields: Message = {"role": role, "content": None if content is None else _as_text(content)}
    if role == "tool":
        identity = body.get("id", body.get("tool_call_id"))
        named = {"name": body["name"]} if isinstance(body.get("name"), str) else {}
        return [message_fields | {"tool_call_id": None if identity is None else str(identity)} | named]
    calls = [
        _call(
            call.get("id"),
            (call.get("function") or call).get("name"),
            (call.get("function") or call).get("arguments"),
        )
        for call in _json(body.get("tool_calls")) or []
        if isinstance(call, dict) and isinstance(call.get("function") or call, dict)
    ]
    return [message_fields | ({"tool_calls": calls} if calls else {})]


def _is_block(value: Any) -> bool:
    return isinstance(value, dict) and bool(block_type(value))


def _of_blocks(role: str, blocks: list[Any], body: dict[str, Any]) -> list[Message]:
    """Of content in the blocks of an API, such as Bedrock's [{"text": ...}, {"toolUse": {...}}]."""
    if role == "tool" and not any(map(is_split, blocks)):
        identity = body.get("id", body.get("tool_call_id"))
        call_id = None if identity is None else str(identity)
        return [{"role": role, "tool_call_id": call_id, "content": result_content(blocks)}]
    return [message for _, message in chat_messages([{"role": role, "content": blocks}])]


def _indexed(given: dict[str, Any], kind: str) -> list[Message]:
    """Of attributes with numbers in their names."""
    by_place: dict[int, dict[str, Any]] = {}
    starts = (f"gen_ai.{kind}", f"llm.{kind}")  # of few attributes, and a pattern is slow to say no
    for key, value in given.items():
        if key.startswith(starts) and (match := _INDEXED.fullmatch(key)):
            by_place.setdefault(int(match[2]), {})[match[3]] = value
    return [
        message
        for _, fields in sorted(by_place.items())
        if any(key.startswith(("role", "content", "tool_call", "function_call")) for key in fields)
        for message in _of_fields(fields)
    ]


def _of_fields(fields: dict[str, Any]) -> list[Message]:
    calls: dict[str, dict[str, Any]] = {}
    for key, value in fields.items():
        if match := _TOOL_CALL.fullmatch(key):
            calls.setdefault(match[1].zfill(4), {})[match[2]] = value
        elif key.startswith("function_call."):
            calls.setdefault("", {})[key.partition(".")[2]] = value
    made = [
        _call(call.get("id"), call.get("name"), call.get("arguments")) for _, call in sorted(calls.items())
    ]
    body = {"role": fields.get("role"), "content": fields.get("content"), "id": fields.get("tool_call_id")}
    found = event_messages("user", body)
    if made:
        found[-1] = found[-1] | {"tool_calls": [*found[-1].get("tool_calls", ()), *made]}
    if isinstance(thought := fields.get("reasoning", fields.get("reasoning_content")), str) and thought:
        found[-1] = found[-1] | {"reasoning_content": thought}
    return found


def _content(span: dict[str, Any], kind: str) -> list[Message]:
    """Of one event that holds all of it, as JSON or as text."""
    event = next((event for event in span["events"] if event["name"] == f"gen_ai.content.{kind}"), None)
    if event is None:
        return []
    given = event["attributes"].get(f"gen_ai.{kind}")
    decoded = _json(given)
    if isinstance(decoded, list):
        return [
            message for each in decoded if isinstance(each, dict) for message in event_messages("user", each)
        ]
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
