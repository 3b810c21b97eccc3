"""Items of OpenAI's Responses API as chat messages. A turn of the model is several items, one message."""

from typing import Any

from workers.schema.message_parts import (
    call_of_block,
    call_with_text,
    is_split,
    reasoning_text,
    result_content,
    result_of_block,
)

Message = dict[str, Any]
_READ = frozenset(("type", "role", "content", "summary", "text"))
_OF_CALL = ("id", "status", "call_id", "name", "arguments", "input")


def is_item(message: Message) -> bool:
    kind = message.get("type")
    return isinstance(kind, str) and (
        kind in ("reasoning", "message") or kind.endswith(("_call", "_call_output"))
    )


def item_message(message: Any) -> Message | None:
    """An item, or a whole response, as a chat message; None for anything else. Ids and the like are under `items`."""
    if not isinstance(message, dict):
        return None
    if message.get("object") == "response" and isinstance(message.get("output"), list):
        return _response(message)
    if not is_item(message) or "lc" in message or isinstance(message.get("data"), dict):
        return None
    kind = message["type"]
    if kind.endswith("_call_output"):
        found = result_of_block(kind, message)
        return found | {"content": result_content(found["content"])}
    about = {
        key: value
        for key, value in message.items()
        if key not in _READ and value is not None and value not in ([], {})
    }
    if kind == "message":
        content = message.get("content")
        if isinstance(content, list) and any(map(is_split, content)):
            return None  # a response of Anthropic
        if isinstance(content, list) and all(map(_is_plain_text, content)):
            content = "\n".join(part["text"] for part in content) or None
        found = {"role": message.get("role", "assistant"), "content": content}
        return found | ({"items": [{"type": kind} | about]} if about else {})
    if kind == "reasoning":
        text = reasoning_text({key: message.get(key) for key in ("summary", "content", "text")})
        found = {"role": "assistant", "content": None} | ({"reasoning_content": text} if text else {})
        return found | ({"items": [{"type": kind} | about]} if about else {})
    return _call_item(kind, message, about)


def joined(before: Message, after: Message) -> Message:
    """Two messages of one turn as one."""
    found = before | {key: value for key, value in after.items() if key not in before}
    for key in ("tool_calls", "items", "reasoning_blocks"):
        if before.get(key) and after.get(key):
            found[key] = [*before[key], *after[key]]
    if before.get("reasoning_content") and after.get("reasoning_content"):
        found["reasoning_content"] = f"{before['reasoning_content']}\n{after['reasoning_content']}"
    first, second = before.get("content"), after.get("content")
    if isinstance(first, str) and isinstance(second, str):
        found["content"] = f"{first}\n{second}"
    elif first is not None and second is not None:
        found["content"] = [*_parts(first), *_parts(second)]
    else:
        found["content"] = second if first is None else first
    return found


def _call_item(kind: str, message: Message, about: Message) -> Message:
    function = call_of_block(kind, message)["function"]
    if (
        function["arguments"] is None and kind != "function_call"
    ):  # a tool of the server: its fields are the arguments
        function["arguments"] = {key: value for key, value in about.items() if key not in _OF_CALL}
        about = {key: value for key, value in about.items() if key in _OF_CALL}
    about = {key: value for key, value in about.items() if key not in _OF_CALL[2:]}
    about |= {} if kind == "function_call" else {"type": kind}
    if not message.get("call_id"):
        about.pop("id", None)
    call = {"id": message.get("call_id") or message.get("id"), "type": "function", "function": function}
    found = {"role": "assistant", "content": None, "tool_calls": [call_with_text(call)]}
    return found | ({"items": [about]} if about else {})


def _response(message: Message) -> Message:
    found: Message = {"role": "assistant", "content": None}
    for item in message["output"]:
        chat = item_message(item)
        if chat is not None:
            found = joined(found, chat)
    rest = {key: value for key, value in message.items() if key not in ("object", "output", "content")}
    rest = {key: value for key, value in rest.items() if value is not None and value not in ([], {})}
    return found | ({"response": rest} if rest else {})


def _is_plain_text(part: Any) -> bool:
    return (
        isinstance(part, dict)
        and part.get("type") in ("output_text", "input_text", "text")
        and isinstance(part.get("text"), str)
        and not any(value for key, value in part.items() if key not in ("type", "text"))
    )


def _parts(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]
