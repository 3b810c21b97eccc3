"""`trl`, `trl-sft`, `trl-unpaired`, `trl-stepwise`, `openrlhf`, `rewardbench`: data for trainers.

Written by `export_dataset` and by others.

A row of ours has a `record` (frozen_records.py), which names the people and what they gave exactly; the trajectories
are those of the project, or the row's messages where it has none of them. Rows of others have no annotator and no task:
the annotator is the format's name, and the trajectories are those that `import_trajectories` reads from the row.
"""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO, get_args

from msgspec.structs import replace

from apps.annotation.feedback.frozen_records import FIELD
from apps.annotation.feedback.incoming import Found, Incoming, RowKey, StoredTrajectory, UnreadField
from apps.annotation.feedback.readers.answer_rows import RowFormat, preference, row_trajectories
from apps.annotation.feedback.readers.json_lines import read_row
from apps.annotation.feedback.readers.record_texts import read_record_text
from apps.annotation.feedback.readers.row_coverage import RowFields
from apps.annotation.feedback.readers.trajectory_files import read_trajectory_files
from apps.annotation.feedback_types.demonstration import DemonstrationValue
from apps.annotation.feedback_types.rating import RatingValue
from apps.annotation.feedback_types.step import StepValue
from apps.core.number_parsing import whole_number
from apps.trajectories.attachments import detach_attachments
from apps.trajectories.field_coverage import PathPatterns
from apps.trajectories.formats.chat import openai
from apps.trajectories.formats.data_rows import alpaca, preferences, prompt_completion, sharegpt, stepwise
from apps.trajectories.formats.data_rows.trainer_rows import Messages, prompt_and_answers
from apps.trajectories.import_reader import read_import_records
from apps.trajectories.serialization import with_task_id
from workers.errors import InvalidRecord
from workers.schema import Origin, Task, Trajectory, from_messages
from workers.schema.decode import convert, finite, parse_json, require_object
from workers.schema.messages import build_trajectory

Read = Callable[[BinaryIO], Iterator[tuple[int, Found]]]
_FIELDS = RowFields(
    PathPatterns(
        [
            "/margin",
            "/label",
            "/labels",
            "/kto_tag",
            "/images",
            f"/{FIELD}",
            "/origin",
            "/task",
            "/trajectory",
            "/chosen_model",
            "/rejected_model",
        ]
    ),
    texts=(
        *("prompt", "chosen", "rejected", "completion", "instruction", "input"),
        *("prompt_messages", "chosen_messages", "rejected_messages"),
    ),
)
_LABELLED = (prompt_completion, sharegpt, alpaca, openai)  # formats whose rows may have a label
_ACCEPTED_BY = (*get_args(Origin), "outcome")  # what rows of ours say of their origin
_STRENGTHS = ((0.5, 1), (0.85, 2), (float("inf"), 3))  # by the margin below which it is this strength


def _preference(format: str, row: dict[str, Any]) -> Iterator[Incoming]:
    """{"prompt"?, "chosen", "rejected", "margin"?}: texts or messages."""
    if FIELD in row:
        yield _frozen_preference(row)
        return
    margin = finite(row.get("margin"), pointer="/margin")
    strength = 1 if margin is None else next(number for most, number in _STRENGTHS if margin < most)
    yield preference(row_trajectories(preferences, row), "a", format, strength=strength)


def _openrlhf(format: str, row: dict[str, Any]) -> Iterator[Incoming]:
    """As `_preference`; our exports name columns of messages that differ in their keys `chosen_messages` and so on."""
    yield from _preference(format, {key.removesuffix("_messages"): value for key, value in row.items()})


def _frozen_preference(row: dict[str, Any]) -> Incoming:
    prompt, (chosen, rejected) = prompt_and_answers(row, "chosen", "rejected", extract=False)
    task = _task(row)
    sides = [
        _trajectory([*prompt, *side], task, row, place, name)
        for side, place, name in ((chosen, 0, "chosen"), (rejected, 1, "rejected"))
    ]
    is_turned = _stated(row).get("choice") == "b"
    return read_record_text(row[FIELD], sides[::-1] if is_turned else sides, pointer=f"/{FIELD}")


def _unpaired(format: str, row: dict[str, Any]) -> Iterator[Incoming]:
    """{"prompt", "completion", "label"}, and rows of LLaMA-Factory with a `label` or `kto_tag`: good or bad alone."""
    if FIELD in row:
        yield read_record_text(row[FIELD], [_frozen_side(row)], pointer=f"/{FIELD}")
        return
    name = "kto_tag" if "kto_tag" in row else "label"
    value = RatingValue(accept=convert(row.get(name), bool, pointer=f"/{name}"))
    places = (with_task_id(_labelled_format(row).read(row)),)
    yield Incoming(kind="rating", task=places[0].task, places=places, annotator=format, value=value)


def _labelled_format(row: dict[str, Any]) -> RowFormat:
    for format in _LABELLED:
        if format.sniff(row):
            return format
    raise InvalidRecord(
        "expected `prompt` and `completion`, `messages`, `conversations`, or `instruction` and `output`."
    )


def _frozen_side(row: dict[str, Any]) -> Trajectory:
    prompt, (completion,) = prompt_and_answers(row, "completion", extract=False)
    return _trajectory([*prompt, *completion], _task(row), row, 0, "completion")


def _demonstration(format: str, row: dict[str, Any]) -> Iterator[Incoming]:
    """{"prompt", "completion"}, {"messages"} and other rows for fine-tuning: each answers as an agent should.

    Rows of ours name their task, and the trajectory is that of the project, where it has one of this content.
    """
    trajectory = _labelled_format(row).read(row)
    if row.get("origin") in _ACCEPTED_BY and isinstance(row.get("task"), str):
        trajectory = replace(trajectory, task=replace(trajectory.task, id=row["task"]))
    trajectory = with_task_id(trajectory)
    number = convert(row.get("trajectory"), RowKey | None, pointer="/trajectory")  # type: ignore[arg-type]
    place = StoredTrajectory(
        content_hash=detach_attachments(trajectory)[0].content_hash, number=number, sent=trajectory
    )
    yield Incoming(
        kind="demonstration",
        task=trajectory.task,
        places=(place,),
        annotator=format,
        value=DemonstrationValue(demonstration=True),
    )


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
        trajectory = _frozen_side(row)
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
    for record in read_import_records(stream):
        comparisons.line = record.line
        if record.skipped:
            yield record.line, UnreadField(record.pointer, "dropped", record.skipped)
        elif record.error is not None:
            yield record.line, record.error.at(record.pointer)
        else:
            parse = partial(comparisons.parse, "trl-unpaired")
            yield from read_row(record.line, record.document, parse, _FIELDS, pointer=record.pointer)
    yield from comparisons.rest()


def _stepwise(format: str, row: dict[str, Any]) -> Iterator[Incoming]:
    """{"prompt", "completions": [text], "labels": [bool]}: an agent step for each completion."""
    steps = convert(row.get("completions"), list[str], pointer="/completions")
    labels = convert(row.get("labels"), list[bool], pointer="/labels")
    if not steps or len(labels) > len(steps):
        raise InvalidRecord("give a completion for each label, and at least one.", pointer="/completions")
    if FIELD in row:
        yield _frozen_steps(row, steps)
        return
    value = StepValue(
        labels={step: "good" if label else "bad" for step, label in enumerate(labels)}, corrections={}
    )
    places = row_trajectories(stepwise, row)
    yield Incoming(kind="step", task=places[0].task, places=places, annotator=format, value=value)


def _frozen_steps(row: dict[str, Any], steps: list[str]) -> Incoming:
    prompt, _ = prompt_and_answers(row, extract=False)
    answers = [{"role": "assistant", "content": step} for step in steps]
    trajectory = _trajectory([*prompt, *answers], _task(row), row, 0, "completions")
    named = _stated(row).get("labels") or {}
    covers = isinstance(named, dict) and all(
        (place := whole_number(step)) is not None and place < len(steps) for step in named
    )
    return read_record_text(row[FIELD], [trajectory] if covers else [], pointer=f"/{FIELD}")


def _reader(format: str, parse: Callable[[str, dict[str, Any]], Iterator[Incoming]]) -> Read:
    return lambda stream: read_trajectory_files(stream, partial(parse, format), _FIELDS)


BY_FORMAT: dict[str, Read] = {
    "trl": _reader("trl", _preference),
    "openrlhf": _reader("openrlhf", _openrlhf),
    "rewardbench": _reader("rewardbench", _preference),
    "trl-sft": _reader("trl-sft", _demonstration),
    "trl-unpaired": _read_unpaired,
    "trl-stepwise": _reader("trl-stepwise", _stepwise),
}


def _stated(row: dict[str, Any]) -> dict[str, Any]:
    """The record of a row, for what has to be known before it is read."""
    record, at = row[FIELD], f"/{FIELD}"
    return require_object(parse_json(record, pointer=at) if isinstance(record, str) else record, pointer=at)


def _task(row: dict[str, Any]) -> Task:
    return convert(_stated(row).get("task"), Task, pointer=f"/{FIELD}/task")


def _trajectory(messages: Messages, task: Task, row: dict[str, Any], side: int, name: str) -> Trajectory:
    """Of a row of ours. name: of the column of its answer."""
    metadata = {key: row[key] for key in ("tools", f"score_{name}") if row.get(key) not in (None, "", [], {})}
    steps = from_messages(messages)
    return build_trajectory(steps, task, pointer=f"/{name}", metadata=metadata, **_agent(_stated(row), side))


def _agent(record: dict[str, Any], side: int) -> dict[str, Any]:
    """Who made the trajectory of a side, where the record says it."""
    places = record.get("trajectories")
    place = record.get("this", 1 - side if record.get("choice") == "b" else side)
    if not isinstance(places, list) or not isinstance(place, int) or not 0 <= place < len(places):
        return {}
    named = places[place] if isinstance(places[place], dict) else {}
    return {key: str(named.get(key) or "") for key in ("agent", "agent_version")}
