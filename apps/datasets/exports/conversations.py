"""Trajectories as conversations, for formats read with `datasets`: every message has the same fields.

`datasets` fixes the columns' types from the beginning of a file, so either all messages have tool fields or none has,
and the first line holds a tool call if any line does.
"""

import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, TypeVar

from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import read_dataset_records
from apps.datasets.statistics import is_usable_pair
from workers.schema import PreferenceRecord, Trajectory, to_messages

RecordT = TypeVar("RecordT")
# Llama 2 (arXiv 2307.09288), table 27, small margins: slightly better, better, significantly better.
MARGINS = {1: 1 / 3, 2: 2 / 3, 3: 1.0}
_ROLES = {"developer": "system", "function": "tool"}


def decided_pairs(dataset_version: DatasetVersion, split: str | None) -> Iterator[PreferenceRecord]:
    """Comparisons with a chosen side, of two different contents, judged overall."""
    for record in read_dataset_records(dataset_version, split):
        if isinstance(record, PreferenceRecord) and is_usable_pair(record) and record.choice in ("a", "b"):
            yield record


def chosen_and_rejected(record: PreferenceRecord) -> tuple[Trajectory, Trajectory]:
    """Chosen, rejected."""
    return (record.a, record.b) if record.choice == "a" else (record.b, record.a)


def preference_fields(record: PreferenceRecord) -> dict[str, Any]:
    """The fields of a preference other than its two sides."""
    return {"margin": MARGINS[record.strength], "origin": record.origin}


def json_lines(
    read: Callable[[], Iterator[RecordT]],
    tools_in: Callable[[RecordT], bool],
    row: Callable[[RecordT, bool], dict[str, Any]],
) -> Iterator[str]:
    """A JSON line for each record of `read`; one with a tool call comes first, since `datasets` infers types from it.

    row: maps (record, whether messages have tool fields) to the object of the line.
    """
    first = next((number for number, record in enumerate(read()) if tools_in(record)), None)
    if first is not None:
        yield _line(row(next(islice(read(), first, None)), True))
    for number, record in enumerate(read()):
        if number != first:
            yield _line(row(record, first is not None))


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def has_tools(trajectory: Trajectory) -> bool:
    return any(step.tool_calls for step in trajectory.steps)


def pair_has_tools(record: PreferenceRecord) -> bool:
    return has_tools(record.a) or has_tools(record.b)


def conversation_messages(trajectory: Trajectory, *, tools: bool) -> list[dict[str, Any]]:
    """tools: whether messages have tool call fields, empty where there are no calls."""
    return [conversation_message(message, tools=tools) for message in to_messages(trajectory)]


def conversation_message(source_message: dict[str, Any], *, tools: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "role": _ROLES.get(source_message["role"], source_message["role"]),
        "content": _text(source_message.get("content")),
    }
    if tools:
        fields["tool_calls"] = [_call(call) for call in _calls(source_message)]
        fields["tool_call_id"] = source_message.get("tool_call_id") or ""
        fields["name"] = source_message.get("name") or ""
    return fields


def prompt_and_rest(trajectory: Trajectory, *, tools: bool) -> tuple[list[Any], list[Any]]:
    """The messages before the first agent step, and the rest."""
    messages = conversation_messages(trajectory, tools=tools)
    cut = next((at for at, message in enumerate(messages) if message["role"] == "assistant"), len(messages))
    prompt = messages[:cut] or [
        conversation_message({"role": "user", "content": trajectory.task.instruction}, tools=tools)
    ]
    return prompt, messages[cut:]


def split_prompt(chosen: list[Any], rejected: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """The common prompt, and the continuation of each side, which starts with an agent message."""
    shared = 0
    for message, other in zip(chosen, rejected, strict=False):
        if message != other:
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
    return "\n\n".join(f"{message['role']}: {_message_text(message)}" for message in messages)


def _message_text(message: dict[str, Any]) -> str:
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
    """The text parts; other parts are named in brackets."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part.get("text") or f"[{part.get('type', 'attachment')}]" for part in content)
