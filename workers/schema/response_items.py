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
NAMED_CALLS = ("function_call", "custom_tool_call")  # of the caller's own tools
_ROLES = ("user", "assistant", "system", "developer")
_OF_CHAT = (
    "tool_calls",
    "function_call",
    "tool_call_id",
    "reasoning_content",
    "reasoning",
    "refusal",
    "name",
)
_READ = frozenset(("type", "role", "content", "summary", "text"))
_OF_CALL = ("id", "status", "call_id", "name", "arguments", "input")
OF_PROGRAMS = (
    "program",
    "program_output",
    "tool_search_output",
    "mcp_approval_request",
    "mcp_approval_response",
)
_RESULTS = ("output", "outputs", "results", "result")  # of a tool of the server, which its call holds


def is_item(message: Message) -> bool:
    kind = message.get("type")
    if kind in NAMED_CALLS:
        return isinstance(message.get("name"), str)
    if kind == "message" and is_chat(message):
        return False
    return isinstance(kind, str) and (
        kind in ("reasoning", "message", *OF_PROGRAMS) or kind.endswith(("_call", "_call_output"))
    )


def is_chat(message: Message) -> bool:
    """Whether a `message` is one of the chat API with a type next to it: it has what no item has."""
    return "role" in message and (message["role"] not in _ROLES or any(message.get(key) for key in _OF_CHAT))


def item_messages(message: Any) -> list[Message] | None:
    """An item, or a whole response, as chat messages; None for anything else. Ids and the like are under `items`.

    The call of a tool of the server is two: its result is a message of its own, as any tool's.
    """
    if not isinstance(message, dict):
        return None
    if message.get("object") == "response" and isinstance(message.get("output"), list):
        return _response(message)
    if not is_item(message) or "lc" in message or isinstance(message.get("data"), dict):
        return None
    held = _held_result(message)
    if held is None:
        found = _item(message)
        return None if found is None else [found]
    name, result = held
    call = _item({key: value for key, value in message.items() if key != name})
    return None if call is None else [call, result]


def starts_message(before: Message, after: Message) -> bool:
    """Text or reasoning after the model's text or call begins its next message; a call joins what stands before it."""
    speaks = after.get("content") is not None or bool(after.get("reasoning_content"))
    return speaks and (before.get("content") is not None or bool(before.get("tool_calls")))


def _item(message: Message) -> Message | None:
    kind = message["type"]
    if kind == "mcp_approval_response":
        told = {key: message[key] for key in ("approve", "reason") if message.get(key) is not None}
        return {
            "role": "tool",
            "tool_call_id": message.get("approval_request_id"),
            "content": result_content(told),
        }
    if kind.endswith("_output"):
        message = message | ({"output": message["tools"]} if message.get("tools") else {})
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


def _held_result(message: Message) -> tuple[str, Message] | None:
    """The field of a call that holds its result, and that as a message. A generated picture is one."""
    kind = message["type"]
    if not kind.endswith("_call") or kind == "function_call":
        return None
    name = next((name for name in _RESULTS if message.get(name)), None)
    if name is None:
        return None
    content = message[name]
    if kind == "image_generation_call" and isinstance(content, str):
        address = f"data:image/{message.get('output_format') or 'png'};base64,{content}"
        content = [{"type": "image_url", "image_url": {"url": address}}]
    identity = message.get("call_id") or message.get("id")
    return name, {"role": "tool", "tool_call_id": identity, "content": result_content(content)}


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


def _response(message: Message) -> list[Message]:
    found: list[Message] = []
    unknown = []
    for item in message["output"]:
        chats = item_messages(item)
        if chats is None:
            unknown.append(item)
        for chat in chats or []:
            last = found[-1] if found and found[-1]["role"] == chat["role"] == "assistant" else None
            if last is not None and not starts_message(last, chat):
                found[-1] = joined(last, chat)
            else:
                found.append(chat)
    rest = {key: value for key, value in message.items() if key not in ("object", "output", "content")}
    rest |= {"output": unknown}
    rest = {key: value for key, value in rest.items() if value is not None and value not in ([], {})}
    first = found[0] if found else {"role": "assistant", "content": None}
    return [first | ({"response": rest} if rest else {}), *found[1:]]


def _is_plain_text(part: Any) -> bool:
    return (
        isinstance(part, dict)
        and part.get("type") in ("output_text", "input_text", "text")
        and isinstance(part.get("text"), str)
        and not any(value for key, value in part.items() if key not in ("type", "text"))
    )


def _parts(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]
