"""Messages as the Vercel AI SDK keeps them for a page: {"id", "role", "parts": [{"type": "step-start"}, {"type":
"text"}, {"type": "tool-NAME", "toolCallId", "state", "input", "output"}, {"type": "dynamic-tool", "toolName"}]}, with a
call and its result in one part; before its version 5 {"type": "tool-invocation", "toolInvocation": {...}}, also as a
list next to the `content`.

Each step of an answer is a message, as the SDK sends it to a model.
"""

from typing import Any

Message = dict[str, Any]
_TOOL, _DYNAMIC, _INVOCATION, _STEP = "tool-", "dynamic-tool", "tool-invocation", "step-start"
_OF_SDK = frozenset((_DYNAMIC, _INVOCATION, _STEP, "source-url", "source-document"))
_BLOCKS = frozenset(
    ("tool-call", "tool-result", "tool-return", "tool-error")
)  # of other APIs: one or the other
_KNOWN = ("type", "toolCallId", "toolName", "input", "rawInput", "output", "errorText", "args", "result")


def is_ui_message(message: Any) -> bool:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        return False
    if _is_list(message.get("toolInvocations")):
        return True
    return _is_list(message.get("parts")) and any(map(_is_of_sdk, message["parts"]))


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _is_of_sdk(part: Any) -> bool:
    kind = part.get("type") if isinstance(part, dict) else None
    return isinstance(kind, str) and (kind in _OF_SDK or _is_tool(part, kind) or kind.startswith("data-"))


def _is_tool(part: Message, kind: str) -> bool:
    return kind.startswith(_TOOL) and kind not in _BLOCKS and "toolCallId" in part


def ui_messages(message: Message) -> list[Message]:
    """The messages of the steps of one, with the blocks that `message_parts` reads."""
    parts = message.get("parts")
    has_parts = _is_list(parts)
    rest = {key: value for key, value in message.items() if key not in ("role", "parts", "toolInvocations")}
    if has_parts:
        content = rest.pop("content", None)
        texts = [part["text"] for part in parts if _is_text(part)]  # type: ignore[union-attr]
        if content not in (None, "", "".join(texts), "\n".join(texts)):
            rest["ui_content"] = content
        if message.get("toolInvocations") and not any(map(_has_call, parts)):  # type: ignore[arg-type]
            parts = [*parts, *map(_invoked, message["toolInvocations"])]  # type: ignore[misc]
    else:
        text = rest.pop("content", None)
        said = [{"type": "text", "text": text}] if isinstance(text, str) and text else []
        parts = [*map(_invoked, message["toolInvocations"]), *(text if isinstance(text, list) else said)]
    steps: list[list[Any]] = [[]]
    for part in parts or []:
        if isinstance(part, dict) and part.get("type") == _STEP:
            steps.append([])
        else:
            steps[-1] += _blocks(part)
    found = [{"role": message["role"], "content": blocks} for blocks in steps if blocks]
    if not found:
        found = [{"role": message["role"], "content": None}]
    return [found[0] | rest, *found[1:]]


def _invoked(invocation: Any) -> Message:
    return {"type": _INVOCATION, _INVOCATION: invocation}


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)


def _has_call(part: Any) -> bool:
    kind = part.get("type") if isinstance(part, dict) else None
    return isinstance(kind, str) and (kind in (_DYNAMIC, _INVOCATION) or _is_tool(part, kind))


def _blocks(part: Any) -> list[Any]:
    """A part as blocks: a call, and its result where it has one."""
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str) or not _has_call(part):
        return [part]
    if kind == _INVOCATION:
        body = part.get("toolInvocation", part.get(_INVOCATION))
        if not isinstance(body, dict):
            return [part]
    else:
        body = part
    name = body.get("toolName") or kind.removeprefix(_TOOL)
    given: Any = next((body[key] for key in ("input", "args", "rawInput") if body.get(key) is not None), {})
    rest = {key: value for key, value in body.items() if key not in _KNOWN}
    call = {"type": "tool_use", "id": body.get("toolCallId"), "name": name, "input": given} | rest
    result = next((body[key] for key in ("output", "result", "errorText") if body.get(key) is not None), None)
    if result is None and body.get("state") not in ("output-available", "output-error", "result"):
        return [call]
    error = {"is_error": True} if body.get("errorText") is not None else {}
    return [call, {"type": "tool_result", "tool_use_id": body.get("toolCallId"), "content": result} | error]
