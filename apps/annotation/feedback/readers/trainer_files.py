"""`trl`, `trl-unpaired`, `trl-stepwise`, `openrlhf`: data for trainers, as `export_dataset` and others write it.

A row of ours has a `record` (frozen_records.py), which names the people and what they gave exactly; the trajectories
are those of the project, or the row's messages where it has none of them. Rows of others have no annotator and no task:
the annotator is the format's name, the task the prompt.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO

from apps.annotation.feedback.frozen_records import FIELD
from apps.annotation.feedback.incoming import Incoming
from apps.annotation.feedback.readers.json_lines import read_json_lines
from apps.annotation.feedback.readers.record_texts import read_record_text
from apps.annotation.feedback_types.pairwise import PreferenceValue
from apps.annotation.feedback_types.rating import RatingValue
from apps.annotation.feedback_types.step import StepValue
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory, from_messages
from workers.schema.atif_model import ARGUMENTS_TEXT
from workers.schema.decode import convert, finite, require_list, require_object
from workers.schema.messages import build_trajectory

Messages = list[dict[str, Any]]
Read = Callable[[BinaryIO], Iterator[tuple[int, Incoming | InvalidRecord]]]
_STRENGTHS = ((0.5, 1), (0.85, 2), (float("inf"), 3))  # by the margin below which it is this strength


def _preference(format: str, row: dict[str, Any]) -> Iterator[Incoming]:
    """{"prompt"?, "chosen", "rejected", "margin"?}: texts or messages."""
    prompt, chosen, rejected = (_messages(row, name) for name in ("prompt", "chosen", "rejected"))
    if "prompt" not in row:
        shared = _common_length(chosen, rejected)
        prompt, chosen, rejected = chosen[:shared], chosen[shared:], rejected[shared:]
    task = _task(row, format, prompt)
    sides = [_trajectory([*prompt, *side], task, row, place) for side, place in ((chosen, 0), (rejected, 1))]
    if FIELD in row:
        is_turned = _stated(row).get("choice") == "b"
        yield read_record_text(row[FIELD], sides[::-1] if is_turned else sides, pointer=f"/{FIELD}")
        return
    margin = finite(row.get("margin"), pointer="/margin")
    strength = 1 if margin is None else next(number for most, number in _STRENGTHS if margin < most)
    value = PreferenceValue(choice="a", strength=strength)  # type: ignore[arg-type]
    yield Incoming(kind="pairwise", task=task, places=tuple(sides), annotator=format, value=value)


def _unpaired(format: str, row: dict[str, Any]) -> Iterator[Incoming]:
    """{"prompt", "completion", "label"}: good or bad alone."""
    trajectory = _one_side(format, row)
    if FIELD in row:
        yield read_record_text(row[FIELD], [trajectory], pointer=f"/{FIELD}")
    else:
        value = RatingValue(accept=convert(row.get("label"), bool, pointer="/label"))
        task = trajectory.task
        yield Incoming(kind="rating", task=task, places=(trajectory,), annotator=format, value=value)


def _one_side(format: str, row: dict[str, Any]) -> Trajectory:
    prompt, completion = _messages(row, "prompt"), _messages(row, "completion")
    return _trajectory([*prompt, *completion], _task(row, format, prompt), row, 0)


class _Comparisons:
    """Comparisons whose sides are in two rows, which need not follow each other."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[int, Trajectory]] = {}

    def parse(self, format: str, row: dict[str, Any]) -> Iterator[Incoming]:
        if FIELD not in row or "this" not in (record := _stated(row)):
            yield from _unpaired(format, row)
            return
        this = record.pop("this")
        if this not in (0, 1):
            raise InvalidRecord("this is 0 or 1.", pointer=f"/{FIELD}/this")
        trajectory = _one_side(format, row)
        key = json.dumps(record, sort_keys=True)
        other, sent = self._first.pop(key, (this, trajectory))
        if other == this:
            self._first[key] = (this, trajectory)
        else:
            sides = [trajectory, sent] if this == 0 else [sent, trajectory]
            yield read_record_text(record, sides, pointer=f"/{FIELD}")

    def rest(self) -> Iterator[Incoming]:
        """Comparisons of which only one side is in the file."""
        for key, (this, trajectory) in self._first.items():
            yield read_record_text(key, [None, trajectory] if this else [trajectory], pointer=f"/{FIELD}")


def _read_unpaired(stream: BinaryIO) -> Iterator[tuple[int, Incoming | InvalidRecord]]:
    comparisons, number = _Comparisons(), 0
    for number, found in read_json_lines(stream, partial(comparisons.parse, "trl-unpaired")):
        yield number, found
    for incoming in comparisons.rest():
        yield number, incoming


def _stepwise(format: str, row: dict[str, Any]) -> Iterator[Incoming]:
    """{"prompt", "completions": [text], "labels": [bool]}: an agent step for each completion."""
    prompt = _messages(row, "prompt")
    steps = convert(row.get("completions"), list[str], pointer="/completions")
    labels = convert(row.get("labels"), list[bool], pointer="/labels")
    if not steps or len(labels) > len(steps):
        raise InvalidRecord("give a completion for each label, and at least one.", pointer="/completions")
    task = _task(row, format, prompt)
    completions = [{"role": "assistant", "content": step} for step in steps]
    trajectory = _trajectory([*prompt, *completions], task, row, 0)
    if FIELD in row:
        named = _stated(row).get("labels") or {}
        covers = isinstance(named, dict) and all(
            step.isdecimal() and int(step) < len(steps) for step in named
        )
        yield read_record_text(row[FIELD], [trajectory] if covers else [], pointer=f"/{FIELD}")
        return
    value = StepValue(
        labels={step: "good" if label else "bad" for step, label in enumerate(labels)},
        corrections={},
        has_first_error=False,
        first_error=None,
    )
    yield Incoming(kind="step", task=task, places=(trajectory,), annotator=format, value=value)


def _reader(format: str, parse: Callable[[str, dict[str, Any]], Iterator[Incoming]]) -> Read:
    return lambda stream: read_json_lines(stream, partial(parse, format))


BY_FORMAT: dict[str, Read] = {
    "trl": _reader("trl", _preference),
    "openrlhf": _reader("openrlhf", _preference),
    "trl-unpaired": _read_unpaired,
    "trl-stepwise": _reader("trl-stepwise", _stepwise),
}


def _stated(row: dict[str, Any]) -> dict[str, Any]:
    """The record of a row, for what has to be known before it is read."""
    record = row[FIELD]
    try:
        return require_object(json.loads(record) if isinstance(record, str) else record)
    except ValueError as error:
        raise InvalidRecord(f"not valid JSON: {error}.", pointer=f"/{FIELD}") from None


def _messages(row: dict[str, Any], name: str) -> Messages:
    """A column of text, which is what the user asks or the agent answers, or of messages."""
    value = row.get(name)
    if value is None and name == "prompt":
        return []
    if isinstance(value, str):
        return [{"role": "user" if name == "prompt" else "assistant", "content": value}] if value else []
    messages = [
        require_object(message, pointer=f"/{name}/{place}")
        for place, message in enumerate(require_list(value, pointer=f"/{name}"))
    ]
    return [_as_sent(message) for message in messages]


def _as_sent(message: dict[str, Any]) -> dict[str, Any]:
    """The message without what `datasets` fills in for missing keys, arguments that are no object as text."""
    kept = {key: value for key, value in message.items() if value is not None or key == "content"}
    calls = kept.get("tool_calls")
    if isinstance(calls, list):
        kept["tool_calls"] = [_call_as_sent(call) for call in calls]
        if not calls:
            del kept["tool_calls"]
    return kept


def _call_as_sent(call: Any) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return call
    arguments = function.get("arguments")
    if isinstance(arguments, dict) and arguments.keys() == {ARGUMENTS_TEXT}:
        return call | {"function": function | {"arguments": arguments[ARGUMENTS_TEXT]}}
    return call


def _common_length(chosen: Messages, rejected: Messages) -> int:
    """Of the messages that both sides begin with, ending before the first agent message that differs."""
    shared = 0
    for message, other in zip(chosen[:-1], rejected[:-1], strict=False):
        if message != other:
            break
        shared += 1
    return shared


def _task(row: dict[str, Any], format: str, prompt: Messages) -> Task:
    if FIELD in row:
        return convert(_stated(row).get("task"), Task, pointer=f"/{FIELD}/task")
    text = "\n\n".join(str(message.get("content") or "") for message in prompt)
    digest = hashlib.sha256(json.dumps(prompt, sort_keys=True).encode()).hexdigest()[:16]
    return Task(id=f"{format}-{digest}", instruction=text)


def _trajectory(messages: Messages, task: Task, row: dict[str, Any], side: int) -> Trajectory:
    images = iter(row.get("images") or ())
    steps = from_messages([_with_images(message, images) for message in messages])
    metadata = {"tools": row["tools"]} if row.get("tools") else {}
    agent: dict[str, Any] = {}
    if FIELD in row:
        record = _stated(row)
        places = record.get("trajectories")
        place = record.get("this", 1 - side if record.get("choice") == "b" else side)
        if isinstance(places, list) and place < len(places) and isinstance(places[place], dict):
            named = places[place]
            agent = {name: str(named.get(name) or "") for name in ("agent", "agent_version")}
    return build_trajectory(steps, task, metadata=metadata, **agent)


def _with_images(message: dict[str, Any], images: Iterator[Any]) -> dict[str, Any]:
    """The message with the images that its placeholders stand for."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    parts = []
    for part in content:
        is_placeholder = isinstance(part, dict) and part.get("type") == "image" and part.get("image") is None
        source = next(images, None) if is_placeholder else None
        parts.append({"type": "image_url", "image_url": {"url": source}} if isinstance(source, str) else part)
    return message | {"content": parts}
