"""A conversation as one text, as LangChain's `get_buffer_string` writes it ("System: ...", "Human: ...", "AI: ...") and
AutoGen's tracing ("system: ...", "user: ...")."""

import ast
from typing import Any

from workers.schema.patterns import TextPattern

Message = dict[str, Any]
_SPEAKERS = (
    {"System": "system", "Human": "user", "AI": "assistant", "Tool": "tool", "Function": "tool"},
    {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"},
)
_LINES = tuple(TextPattern(rf"(?m)^({'|'.join(speakers)}): ?") for speakers in _SPEAKERS)
_CALLS = "[{'name': "


def transcript_messages(text: str) -> list[Message]:
    """The messages of a text that begins with who speaks; empty for any other.

    Results are tied to calls by their order, for the text has no ids of them.
    """
    for speakers, lines in zip(_SPEAKERS, _LINES, strict=True):
        marks = list(lines.finditer(text))
        if len(marks) < 2 or marks[0].start() != 0:
            continue
        ends = [*(mark.start() for mark in marks[1:]), len(text)]
        pieces = [
            (speakers[mark[1]], text[mark.end() : end].removesuffix("\n"))
            for mark, end in zip(marks, ends, strict=True)
        ]
        return _messages(pieces)
    return []


def _messages(pieces: list[tuple[str, str]]) -> list[Message]:
    found: list[Message] = []
    waiting: list[str | None] = []
    for role, text in pieces:
        if role == "assistant":
            message = _answer(text)
            if not message["content"] and "tool_calls" not in message:
                continue  # where the model is to go on
            waiting = [call["id"] for call in message.get("tool_calls", ())]
            found.append(message)
        elif role == "tool":
            found.append({"role": role, "tool_call_id": waiting.pop(0) if waiting else None, "content": text})
        else:
            found.append({"role": role, "content": text})
    return found


def _answer(text: str) -> Message:
    """Behind the text of a message with calls their list stands, as Python writes it."""
    start = text.rfind(_CALLS)
    if start >= 0 and text.endswith("]"):
        try:
            calls = ast.literal_eval(text[start:])
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            calls = []
        if calls and all(isinstance(call, dict) and isinstance(call.get("args"), dict) for call in calls):
            return {
                "role": "assistant",
                "content": text[:start] or None,
                "tool_calls": [
                    {
                        "id": call.get("id"),
                        "type": "function",
                        "function": {"name": str(call["name"]), "arguments": call["args"]},
                    }
                    for call in calls
                ],
            }
    return {"role": "assistant", "content": text}
