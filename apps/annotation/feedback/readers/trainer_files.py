"""`trl`, `trl-unpaired`, `trl-stepwise`, `openrlhf`, `rewardbench`: data for trainers.

Written by `export_dataset` and by others.

A row of ours has a `record` (frozen_records.py), which names the people and what they gave exactly; the trajectories
are those of the project, or the row's messages where it has none of them. Rows of others have no annotator and no task:
the annotator is the format's name, the task the prompt.
"""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO

from apps.annotation.feedback.frozen_records import FIELD
from apps.annotation.feedback.incoming import Found, Incoming
from apps.annotation.feedback.readers.json_lines import read_json_documents, read_json_lines, read_row
from apps.annotation.feedback.readers.record_texts import read_record_text
from apps.annotation.feedback.readers.row_coverage import RowFields
from apps.annotation.feedback.readers.trainer_rows import Messages, prompt_and_answers, prompt_task
from apps.annotation.feedback_types.pairwise import PreferenceValue
from apps.annotation.feedback_types.rating import RatingValue
from apps.annotation.feedback_types.step import StepValue
from apps.trajectories.field_coverage import PathPatterns
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory, from_messages
from workers.schema.decode import convert, finite, optional_str, parse_json, require_object
from workers.schema.messages import build_trajectory

Read = Callable[[BinaryIO], Iterator[tuple[int, Found]]]
_FIELDS = RowFields(
    PathPatterns(
        [
            "/margin",
            "/label",
            "/labels",
            "/images",
            f"/{FIELD}",
            "/origin",
            "/chosen_model",
            "/rejected_model",
        ]
    ),
    texts=("prompt", "chosen", "rejected", "completion"),
)
_STRENGTHS = ((0.5, 1), (0.85, 2), (float("inf"), 3))  # by the margin below which it is this strength


def _preference(format: str, row: dict[str, Any]) -> Iterator[Incoming]:
    """{"prompt"?, "chosen", "rejected", "margin"?}: texts or messages."""
    prompt, (chosen, rejected) = prompt_and_answers(row, "chosen", "rejected", extract=FIELD not in row)
    task = _task(row, format, prompt, [chosen, rejected])
    sides = [
        _trajectory([*prompt, *side], task, row, place, name)
        for side, place, name in ((chosen, 0, "chosen"), (rejected, 1, "rejected"))
    ]
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
    prompt, (completion,) = prompt_and_answers(row, "completion", extract=FIELD not in row)
    task = _task(row, format, prompt, [completion])
    return _trajectory([*prompt, *completion], task, row, 0, "completion")


class _Comparisons:
    """Comparisons whose sides are in two rows, which need not follow each other."""

    def __init__(self) -> None:
        self.line = 0
        self._first: dict[str, tuple[int, Trajectory, int]] = {}  # this, trajectory, line

    def parse(self, format: str, row: dict[str, Any]) -> Iterator[Incoming]:
        if FIELD not in row or "this" not in (record := _stated(row)):
            yield from _unpaired(format, row)
            return
        this = record.pop("this")
        if isinstance(this, bool) or not isinstance(this, int) or this not in (0, 1):
            raise InvalidRecord("this is 0 or 1.", pointer=f"/{FIELD}/this")
        trajectory = _one_side(format, row)
        key = json.dumps(record, sort_keys=True)
        other, sent, _ = self._first.pop(key, (this, trajectory, 0))
        if other == this:
            self._first[key] = (this, trajectory, self.line)
        else:
            sides = [trajectory, sent] if this == 0 else [sent, trajectory]
            yield read_record_text(record, sides, pointer=f"/{FIELD}")

    def rest(self) -> Iterator[tuple[int, Found]]:
        """Comparisons of which only one side is in the file."""
        for key, (this, trajectory, line) in self._first.items():
            sides = [None, trajectory] if this else [trajectory]
            try:
                yield line, read_record_text(key, sides, pointer=f"/{FIELD}")
            except InvalidRecord as error:
                yield line, error


def _read_unpaired(stream: BinaryIO) -> Iterator[tuple[int, Found]]:
    comparisons = _Comparisons()
    for number, row in read_json_documents(stream):
        comparisons.line = number
        if isinstance(row, InvalidRecord):
            yield number, row
        else:
            yield from read_row(number, row, partial(comparisons.parse, "trl-unpaired"), _FIELDS)
    yield from comparisons.rest()


def _stepwise(format: str, row: dict[str, Any]) -> Iterator[Incoming]:
    """{"prompt", "completions": [text], "labels": [bool]}: an agent step for each completion."""
    prompt, _ = prompt_and_answers(row, extract=False)
    steps = convert(row.get("completions"), list[str], pointer="/completions")
    labels = convert(row.get("labels"), list[bool], pointer="/labels")
    if not steps or len(labels) > len(steps):
        raise InvalidRecord("give a completion for each label, and at least one.", pointer="/completions")
    completions = [{"role": "assistant", "content": step} for step in steps]
    task = _task(row, format, prompt, [completions])
    trajectory = _trajectory([*prompt, *completions], task, row, 0, "completions")
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
    return lambda stream: read_json_lines(stream, partial(parse, format), _FIELDS)


BY_FORMAT: dict[str, Read] = {
    "trl": _reader("trl", _preference),
    "openrlhf": _reader("openrlhf", _preference),
    "rewardbench": _reader("rewardbench", _preference),
    "trl-unpaired": _read_unpaired,
    "trl-stepwise": _reader("trl-stepwise", _stepwise),
}


def _stated(row: dict[str, Any]) -> dict[str, Any]:
    """The record of a row, for what has to be known before it is read."""
    record, at = row[FIELD], f"/{FIELD}"
    return require_object(parse_json(record, pointer=at) if isinstance(record, str) else record, pointer=at)


def _task(row: dict[str, Any], format: str, prompt: Messages, answers: list[Messages]) -> Task:
    if FIELD in row:
        return convert(_stated(row).get("task"), Task, pointer=f"/{FIELD}/task")
    return prompt_task(prompt, answers, format)


def _trajectory(messages: Messages, task: Task, row: dict[str, Any], side: int, name: str) -> Trajectory:
    """name: of the column of its answer."""
    metadata = {key: row[key] for key in ("tools", f"score_{name}") if row.get(key) not in (None, "", [], {})}
    model = optional_str(row.get(f"{name}_model"), pointer=f"/{name}_model")
    agent = _agent(_stated(row), side) if FIELD in row else {"agent": model or ""}
    return build_trajectory(from_messages(messages), task, pointer=f"/{name}", metadata=metadata, **agent)


def _agent(record: dict[str, Any], side: int) -> dict[str, Any]:
    """Who made the trajectory of a side, where the record says it."""
    places = record.get("trajectories")
    place = record.get("this", 1 - side if record.get("choice") == "b" else side)
    if not isinstance(places, list) or not isinstance(place, int) or not 0 <= place < len(places):
        return {}
    named = places[place] if isinstance(places[place], dict) else {}
    return {key: str(named.get(key) or "") for key in ("agent", "agent_version")}
