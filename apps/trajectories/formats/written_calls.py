"""Calls that an agent wrote in its text in Hermes' marks (`<tool_call>{"name", "arguments"}</tool_call>`), where
results of tools follow them: as messages of the role tool, or in `<tool_response>` of the user's side, as Qwen's
template has it.
"""

from typing import Any

from workers.schema.chat_text import FORMATS, read_response
from workers.schema.message_shapes import ROLES

Message = dict[str, Any]
_CALL, _RESULT = "<tool_call>", "<tool_response>"


def with_written_calls(messages: list[Any]) -> list[Any]:
    """Chat messages with such calls as their `tool_calls`. As they are where no result says that these were made, or
    some message has calls already."""
    if not any(_is_result(message) for message in messages) or any(
        isinstance(message, dict) and message.get("tool_calls") for message in messages
    ):
        return messages
    found: list[Any] = []
    for message in messages:
        read = read_response(message["content"], FORMATS["chatml"]) if _has_call(message) else None
        if read is not None and len(read.response) == 1 and read.response[0].get("tool_calls"):
            found.append(message | read.response[0])
        elif _is_written_result(message) and found and _made_calls(found[-1]):
            found.append(message | {"role": "tool"})
        else:
            found.append(message)
    return found


def _role(message: Any) -> str:
    role = message.get("role") if isinstance(message, dict) else None
    return ROLES.get(role.strip().lower(), "") if isinstance(role, str) else ""


def _has_call(message: Any) -> bool:
    return (
        _role(message) == "assistant"
        and isinstance(message.get("content"), str)
        and _CALL in message["content"]
    )


def _is_result(message: Any) -> bool:
    return _role(message) == "tool" or _is_written_result(message)


def _is_written_result(message: Any) -> bool:
    content = message.get("content") if _role(message) == "user" else None
    return isinstance(content, str) and content.lstrip().startswith(_RESULT)


def _made_calls(message: Any) -> bool:
    return isinstance(message, dict) and bool(message.get("tool_calls"))
