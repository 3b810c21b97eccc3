"""`trl`: preferences as TRL's trainers read them: explicit prompt, conversational, with a margin.

    {"prompt": [messages], "chosen": [messages], "rejected": [messages], "margin": 0.67}

Ties, both-bad, judgements of one criterion and pairs of equal contents have no chosen side and are left out. Messages
all have the same fields, and the first line holds a tool call if any line does: `datasets` fixes the columns' types
from the beginning of the file.
"""

import json
from collections.abc import Iterator
from typing import Any

from apps.datasets.contents import is_usable_pair
from apps.datasets.models import Snapshot
from apps.datasets.selectors import records_of
from workers.schema import PreferenceRecord, Trajectory, to_messages

# Llama 2 (arXiv 2307.09288), table 27, small margins: slightly better, better, significantly better.
MARGINS = {1: 1 / 3, 2: 2 / 3, 3: 1.0}


def export(snapshot: Snapshot, split: str | None) -> Iterator[str]:
    with_tools = next((number for number, one in enumerate(_pairs(snapshot, split)) if _has_tools(one)), None)
    if with_tools is not None:
        yield _line(
            next(one for number, one in enumerate(_pairs(snapshot, split)) if number == with_tools),
            tools=True,
        )
    for number, one in enumerate(_pairs(snapshot, split)):
        if number != with_tools:
            yield _line(one, tools=with_tools is not None)


def _pairs(snapshot: Snapshot, split: str | None) -> Iterator[PreferenceRecord]:
    for record in records_of(snapshot, split):
        if isinstance(record, PreferenceRecord) and is_usable_pair(record) and record.choice in ("a", "b"):
            yield record


def _has_tools(record: PreferenceRecord) -> bool:
    return any(step.tool_calls for side in (record.a, record.b) for step in side.steps)


def _line(record: PreferenceRecord, *, tools: bool) -> str:
    chosen, rejected = (record.a, record.b) if record.choice == "a" else (record.b, record.a)
    prompt, first, second = split_prompt(_messages(chosen, tools=tools), _messages(rejected, tools=tools))
    if not prompt:
        prompt = [_message({"role": "user", "content": record.a.task.instruction}, tools=tools)]
    row = {"prompt": prompt, "chosen": first, "rejected": second, "margin": MARGINS[record.strength]}
    return json.dumps(row, ensure_ascii=False) + "\n"


def split_prompt(chosen: list[Any], rejected: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """What both begin with, and what each goes on with: both go on with the agent's turn."""
    shared = 0
    for one, other in zip(chosen, rejected, strict=False):
        if one != other:
            break
        shared += 1
    cut = min(shared, len(chosen) - 1, len(rejected) - 1)
    while cut > 0 and not (chosen[cut]["role"] == rejected[cut]["role"] == "assistant"):
        cut -= 1
    return chosen[:cut], chosen[cut:], rejected[cut:]


def _messages(trajectory: Trajectory, *, tools: bool) -> list[dict[str, Any]]:
    return [_message(message, tools=tools) for message in to_messages(trajectory)]


def _message(message: dict[str, Any], *, tools: bool) -> dict[str, Any]:
    kept: dict[str, Any] = {
        "role": _ROLES.get(message["role"], message["role"]),
        "content": _text(message.get("content")),
    }
    if tools:
        kept["tool_calls"] = [_call(call) for call in _calls(message)]
        kept["tool_call_id"] = message.get("tool_call_id") or ""
        kept["name"] = message.get("name") or ""
    return kept


_ROLES = {"developer": "system", "function": "tool"}


def _calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    if "function_call" in message:
        return [{"function": message["function_call"]}]
    return message.get("tool_calls") or []


def _call(call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    return {
        "id": call.get("id") or "",
        "type": "function",
        "function": {"name": function["name"], "arguments": function["arguments"]},
    }


def _text(content: Any) -> str:
    """Text alone; what is no text is named in brackets."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part.get("text") or f"[{part.get('type', 'attachment')}]" for part in content)
