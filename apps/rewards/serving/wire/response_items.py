"""Items of OpenAI's Responses API as chat messages: what NeMo-Gym's prompts and responses are made of."""

import json
from collections.abc import Sequence
from typing import Any

from apps.rewards.serving.wire.protocol import text
from workers.errors import InvalidRecord
from workers.schema.decode import require_list, require_object

Json = dict[str, Any]
_TEXTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text", "refusal")
_ABOUT_CALLS = ("type", "id", "call_id", "status", "output", "outputs", "results", "result", "name")
_OUTPUTS = ("output", "outputs", "results", "result")


class ItemReader:
    """flags: what of the items is not read."""

    def __init__(self) -> None:
        self.flags: dict[str, None] = {}

    def messages(self, items: Sequence[Any], at: str) -> list[Json]:
        """Chat messages: consecutive texts, reasoning and calls of the assistant make one message."""
        found: list[Json] = []
        pending: Json | None = None
        for index, raw in enumerate(items):
            place = f"{at}/{index}"
            item = require_object(raw, pointer=place)
            kind = text(item.get("type", "message"), f"{place}/type")
            own = self._own(item, kind, place)
            if own is None:
                found += [] if pending is None else [pending]
                pending = None
                found += self._other(item, kind, place)
                continue
            if pending is not None and kind in ("message", "reasoning") and _is_over(pending):
                found.append(pending)
                pending = None
            pending = _joined(pending, own)
            if (result := _inline_result(item, kind)) is not None:
                found += [pending, result]
                pending = None
        return found if pending is None else [*found, pending]

    def _own(self, item: Json, kind: str, at: str) -> Json | None:
        """The assistant's part of a message; None for what is not the assistant's, or is nothing."""
        if kind == "message":
            if item.get("role") != "assistant":
                return None
            return {"role": "assistant", "content": self._content(item.get("content"), f"{at}/content")}
        if kind == "reasoning":
            parts = item.get("content") or item.get("summary") or []
            if item.get("encrypted_content") and not parts:
                self.flags["unread:encrypted_content"] = None
            words = self._content(parts, f"{at}/summary")
            return {"role": "assistant", "content": None} | ({"reasoning_content": words} if words else {})
        if kind.endswith("_call"):
            return {"role": "assistant", "content": None, "tool_calls": [_call(item, kind, at)]}
        return None

    def _other(self, item: Json, kind: str, at: str) -> list[Json]:
        if kind.endswith("_call_output"):
            output = item.get("output")
            content = (
                _json_text(output) if isinstance(output, dict) else self._content(output, f"{at}/output")
            )
            return [{"role": "tool", "tool_call_id": item.get("call_id"), "content": content}]
        if kind != "message":
            self.flags[f"unread:{kind[:40]}"] = None
            return []
        role = item.get("role")
        if role not in ("user", "system", "developer"):
            raise InvalidRecord(f"a message of the role {role!r} is not known.", pointer=f"{at}/role")
        content = self._content(item.get("content"), f"{at}/content")
        return [{"role": "system" if role == "developer" else role, "content": content}]

    def _content(self, value: Any, at: str) -> Any:
        """A text; content parts where some are no text. Nothing is an empty text."""
        if value is None or isinstance(value, str):
            return value or ""
        parts: list[Json] = []
        for index, raw in enumerate(require_list(value, pointer=at)):
            part = require_object(raw, pointer=f"{at}/{index}")
            kind = part.get("type")
            if kind in _TEXTS:
                words = text(part.get("text", part.get("refusal")), f"{at}/{index}/text")
                parts.append({"type": "text", "text": words})
            elif kind in ("input_image", "image", "image_url", "output_image", "computer_screenshot"):
                parts.append({"type": "image"})
            else:
                self.flags[f"unread:{str(kind)[:40]}"] = None
        if all(part["type"] == "text" for part in parts):
            return "\n".join(part["text"] for part in parts)
        return parts


def _is_over(pending: Json) -> bool:
    """Whether the assistant starts another message: this one has text or calls already."""
    return pending["content"] is not None or "tool_calls" in pending


def _joined(pending: Json | None, own: Json) -> Json:
    if pending is None:
        return own
    joined = pending | {key: value for key, value in own.items() if value is not None}
    calls = [*pending.get("tool_calls", []), *own.get("tool_calls", [])]
    reasoning = [each["reasoning_content"] for each in (pending, own) if each.get("reasoning_content")]
    return (
        joined
        | ({"tool_calls": calls} if calls else {})
        | ({"reasoning_content": "\n".join(reasoning)} if reasoning else {})
    )


def _call(item: Json, kind: str, at: str) -> Json:
    """A call of any kind: a function's, or one of a built-in tool with what the item says of it as arguments."""
    if kind == "function_call" or (kind == "mcp_call" and "name" in item):
        name = text(item.get("name"), f"{at}/name")
        arguments: Any = text(item.get("arguments"), f"{at}/arguments")
    elif kind == "custom_tool_call":
        name, arguments = text(item.get("name"), f"{at}/name"), text(item.get("input"), f"{at}/input")
    else:
        name = kind.removesuffix("_call")
        arguments = {
            key: value for key, value in item.items() if key not in _ABOUT_CALLS and value is not None
        }
    call_id = item.get("call_id") or item.get("id")
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _inline_result(item: Json, kind: str) -> Json | None:
    """What a built-in tool gave back, which its call holds. A generated picture is one."""
    if not kind.endswith("_call") or kind == "function_call":
        return None
    name = next((name for name in _OUTPUTS if item.get(name)), None)
    if name is None:
        return None
    is_picture = kind == "image_generation_call"
    content: Any = [{"type": "image"}] if is_picture else _json_text(item[name])
    return {"role": "tool", "tool_call_id": item.get("call_id") or item.get("id"), "content": content}


def _json_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
