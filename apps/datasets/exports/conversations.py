"""Trajectories as conversations, for formats that are read with `datasets`: every message has the same fields.

`datasets` fixes the columns' types from the beginning of a file, so either all messages have tool fields or none has,
and the first line holds a tool call if any line does.
"""

import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, TypeVar

from apps.datasets.contents import is_usable_pair
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import records_of
from workers.schema import PreferenceRecord, Trajectory, to_messages

One = TypeVar("One")
# Llama 2 (arXiv 2307.09288), table 27, small margins: slightly better, better, significantly better.
MARGINS = {1: 1 / 3, 2: 2 / 3, 3: 1.0}
_ROLES = {"developer": "system", "function": "tool"}


def decided_pairs(dataset_version: DatasetVersion, split: str | None) -> Iterator[PreferenceRecord]:
    """Comparisons with a chosen side, judged overall, of two different contents."""
    for record in records_of(dataset_version, split):
        if isinstance(record, PreferenceRecord) and is_usable_pair(record) and record.choice in ("a", "b"):
            yield record


def sides(record: PreferenceRecord) -> tuple[Trajectory, Trajectory]:
    """Chosen, rejected."""
    return (record.a, record.b) if record.choice == "a" else (record.b, record.a)


def told(record: PreferenceRecord) -> dict[str, Any]:
    """What preferences say beside the two sides."""
    return {"margin": MARGINS[record.strength], "origin": record.origin}


def lines(
    read: Callable[[], Iterator[One]],
    tools_in: Callable[[One], bool],
    row: Callable[[One, bool], dict[str, Any]],
) -> Iterator[str]:
    """A JSON line for each of what `read` gives, one with a tool call first if there is any: `datasets` must see one.

    row: (one, whether messages have the fields of tools) to the line's object.
    """
    first = next((number for number, one in enumerate(read()) if tools_in(one)), None)
    if first is not None:
        yield _line(row(next(islice(read(), first, None)), True))
    for number, one in enumerate(read()):
        if number != first:
            yield _line(row(one, first is not None))


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def has_tools(trajectory: Trajectory) -> bool:
    return any(step.tool_calls for step in trajectory.steps)


def pair_has_tools(record: PreferenceRecord) -> bool:
    return has_tools(record.a) or has_tools(record.b)


def messages_of(trajectory: Trajectory, *, tools: bool) -> list[dict[str, Any]]:
    """tools: whether messages have the fields of tool calls, empty where there are none."""
    return [message(one, tools=tools) for one in to_messages(trajectory)]


def message(said: dict[str, Any], *, tools: bool) -> dict[str, Any]:
    kept: dict[str, Any] = {
        "role": _ROLES.get(said["role"], said["role"]),
        "content": _text(said.get("content")),
    }
    if tools:
        kept["tool_calls"] = [_call(call) for call in _calls(said)]
        kept["tool_call_id"] = said.get("tool_call_id") or ""
        kept["name"] = said.get("name") or ""
    return kept


def prompt_and_rest(trajectory: Trajectory, *, tools: bool) -> tuple[list[Any], list[Any]]:
    """What comes before the agent's first turn, and the rest."""
    messages = messages_of(trajectory, tools=tools)
    cut = next((at for at, one in enumerate(messages) if one["role"] == "assistant"), len(messages))
    prompt = messages[:cut] or [
        message({"role": "user", "content": trajectory.task.instruction}, tools=tools)
    ]
    return prompt, messages[cut:]


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


def as_text(messages: list[dict[str, Any]]) -> str:
    """Plain text: one message as it is, several with their roles; calls as `name(arguments)`."""
    if len(messages) == 1 and not messages[0].get("tool_calls"):
        return str(messages[0]["content"])
    return "\n\n".join(f"{one['role']}: {_said(one)}" for one in messages)


def _said(message: dict[str, Any]) -> str:
    calls = [
        f"{call['function']['name']}({call['function']['arguments']})"
        for call in message.get("tool_calls", ())
    ]
    return "\n".join(part for part in (message["content"], *calls) if part)


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
