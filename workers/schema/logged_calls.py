"""Calls, results and definitions of tools in messages whose role or content does not say so, as of some loggers.

Koog and others log the calls of an answer as JSON text. The Langfuse callback for LangChain.js gives a result the
name of its tool as its role, the one for Python adds the definitions of tools as messages of the role `tool`.
"""

from dataclasses import dataclass, field
from typing import Any

from workers.schema.bounded import loads

Message = dict[str, Any]
_CALL_KEYS = frozenset(("id", "tool_call_id", "type", "index", "name", "arguments", "function"))
_LONGEST = 2**20  # characters of a text that is looked at


@dataclass(slots=True)
class LoggedCalls:
    """The messages of a chat, one after another. called: names of tools that were called. waiting: ids of calls that
    were text, whose results have none."""

    called: set[str] = field(default_factory=set)
    waiting: list[str] = field(default_factory=list)

    def restored(self, message: Any) -> Any:
        """The message as what it is; None for a definition of tools."""
        if not isinstance(message, dict) or not isinstance(role := message.get("role"), str):
            return message
        content = message.get("content")
        if role in self.called and role not in ("user", "assistant", "system", "tool"):
            return message | {"role": "tool", "name": role}
        if message.get("tool_calls") or message.get("tool_call_id") or role not in ("assistant", "tool"):
            return message
        if role == "tool" and _is_definition(content):
            return None
        if (calls := _calls_of_text(content)) is not None:
            self.waiting += [call["id"] for call in calls]
            return message | {"role": "assistant", "content": None, "tool_calls": calls}
        if role == "tool" and self.waiting and "name" not in message:
            return message | {"tool_call_id": self.waiting.pop(0)}
        return message

    def add_names(self, message: Any) -> None:
        """Of the tools that a restored message calls."""
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        for call in calls if isinstance(calls, list) else ():
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict) and isinstance(function.get("name"), str):
                self.called.add(function["name"])


def _is_definition(content: Any) -> bool:
    if isinstance(content, str) and content.startswith('{"type": "function"'):
        content = _decoded(content)
    function = content.get("function") if isinstance(content, dict) else None
    return (
        isinstance(function, dict)
        and content.get("type") == "function"
        and "parameters" in function
        and "arguments" not in function
    )


def _calls_of_text(content: Any) -> list[Message] | None:
    """The calls that a text is a JSON list of, each with its id; None for other texts."""
    if not isinstance(content, str) or not content.startswith("[{") or not content.rstrip().endswith("}]"):
        return None
    calls = _decoded(content)
    if not isinstance(calls, list) or not all(map(_is_call, calls)):
        return None
    return [_call(call) for call in calls]


def _is_call(call: Any) -> bool:
    if not isinstance(call, dict) or not call.keys() <= _CALL_KEYS:
        return False
    named = call["function"] if isinstance(call.get("function"), dict) else call
    has_id = isinstance(call.get("id", call.get("tool_call_id")), str)
    return has_id and isinstance(named.get("name"), str) and "arguments" in named


def _call(call: Message) -> Message:
    function = call.get("function")
    named = function if isinstance(function, dict) else {key: call[key] for key in ("name", "arguments")}
    return {"id": call.get("id", call.get("tool_call_id")), "type": "function", "function": named}


def _decoded(text: str) -> Any:
    try:
        return loads(text) if len(text) <= _LONGEST else None
    except ValueError:
        return None
