"""By what a message, a request of a model and its response are known, in any vendor's shape."""

from typing import Any

_BLOCK_KEYS = ("type", "text", "toolUse", "toolResult", "functionCall", "functionResponse", "image")
_WRAPPED = (
    *("human", "ai", "system", "tool", "function", "chat", "AIMessageChunk"),
    *("HumanMessage", "AIMessage", "SystemMessage", "ToolMessage"),
)


def is_message(value: Any) -> bool:
    """Whether a value is one message, or one item of the Responses API."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("role"), str):
        return any(key in value for key in ("content", "parts", "tool_calls", "blocks", "function_call"))
    if value.get("lc") is not None and isinstance(value.get("kwargs"), dict):
        return True
    if is_item(value):
        return True
    kind = value.get("type")
    return isinstance(kind, str) and kind in _WRAPPED and ("content" in value or "data" in value)


def is_request(value: Any) -> bool:
    """Whether JSON that stands in a text is a request, and not a text that happens to be JSON."""
    if isinstance(value, list):
        return bool(value) and (all(map(is_message, value)) or (is_request(value[0]) and len(value) == 1))
    return isinstance(value, dict) and (
        is_message(value)
        or (list(value) == ["prompt"] and isinstance(value["prompt"], str | list))
        or any(isinstance(value.get(key), list) and value[key] for key in ("messages", "contents"))
        or (isinstance(value.get("input"), list) and is_request(value["input"]))
    )


def is_response(value: Any) -> bool:
    if isinstance(value, list):
        is_known = bool(value) and (all(map(is_message, value)) or all(map(is_sdk_call, value)))
        return is_known or (len(value) == 1 and is_response(value[0]))
    return isinstance(value, dict) and (
        is_message(value)
        or is_message(value.get("content"))
        or is_message(value.get("message"))
        or any(
            isinstance(value.get(key), list) and value[key] and isinstance(value[key][0], dict | list)
            for key in ("choices", "generations", "candidates", "tool_calls")
        )
        or (isinstance(value.get("messages"), list) and any(map(is_message, value["messages"])))
        or (isinstance(value.get("output"), list) and any(map(is_item, value["output"])))
    )


def is_sdk_call(value: Any) -> bool:
    """Whether a value is a call as the Vercel AI SDK has it in `ai.response.toolCalls`."""
    return isinstance(value, dict) and {"toolCallId", "toolName"} <= value.keys() and "result" not in value


def is_block(value: Any) -> bool:
    return isinstance(value, dict) and "role" not in value and any(key in value for key in _BLOCK_KEYS)


def is_item(value: Any) -> bool:
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(kind, str):
        return False
    return (
        kind in ("reasoning", "function_call_output")
        or (kind.endswith(("_call", "_call_output")) and ("id" in value or "call_id" in value))
        or (kind == "message" and "role" in value)
    )
