"""Records of a file with their line numbers. An invalid record becomes its error, and reading continues."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

from django.conf import settings
from msgspec.structs import replace

from apps.annotation.feedback.incoming import Found, Incoming
from apps.annotation.feedback.readers.row_coverage import RowFields, unread_fields
from workers.errors import InvalidRecord
from workers.schema import (
    Origin,
    ScoreInput,
    Task,
    Text,
    Trajectory,
    TrajectoryId,
    clean,
    parse_item,
    parse_json,
)
from workers.schema.decode import convert, optional_str, require_object

COMMON = ("task", "annotator", "campaign", "item", "origin", "made")  # made: provenance in an export
_ORIGINS = ("person", "judge", "simulated", "imported")
Parse = Callable[[dict[str, Any]], Iterable[Incoming]]


def read_json_lines(
    stream: BinaryIO, parse: Parse, fields: RowFields | None = None
) -> Iterator[tuple[int, Found]]:
    """Records of a JSON-lines file, with their fields that are not read. The number is the line's, from 1."""
    for number, document in read_json_documents(stream):
        if isinstance(document, InvalidRecord):
            yield number, document
        else:
            yield from read_row(number, document, parse, fields)


def read_json_documents(stream: BinaryIO) -> Iterator[tuple[int, dict[str, Any] | InvalidRecord]]:
    """The objects of a JSON-lines file, or what is wrong with the line."""
    limit = settings.MAX_RECORD_BYTES
    number = 0
    while line := stream.readline(limit + 1):
        number += 1
        if len(line) > limit:
            yield number, too_large(limit)
            while line and not line.endswith(b"\n"):
                line = stream.readline(limit)
        elif line.strip():
            try:
                document = require_object(parse_json(line))
            except InvalidRecord as error:
                yield number, error
            else:
                yield number, document


def read_json_array(
    stream: BinaryIO, parse: Parse, fields: RowFields | None = None
) -> Iterator[tuple[int, Found]]:
    """Records of one JSON array, with their fields that are not read. The number is the element's, from 1."""
    try:
        elements = parse_json(stream.read())
    except InvalidRecord as error:
        yield 1, error
        return
    if not isinstance(elements, list):
        yield 1, InvalidRecord("expected a JSON array of records.")
        return
    for number, element in enumerate(elements, start=1):
        yield from read_row(number, element, parse, fields)


def too_large(limit: int) -> InvalidRecord:
    return InvalidRecord(
        f"the record is larger than {limit // 2**20} MB; raise TOUCHSTONE_MAX_RECORD_MB or split it."
    )


def read_row(
    number: int, value: Any, parse: Parse, fields: RowFields | None, *, pointer: str = ""
) -> Iterator[tuple[int, Found]]:
    """Records of one row. pointer: where the row is in its file."""
    made: list[Incoming] = []
    try:
        document, _ = clean(require_object(value))
        for incoming in parse(document):
            made.append(incoming)
            yield number, incoming
    except InvalidRecord as error:
        yield number, error.at(pointer) if pointer else error
        return
    if made and fields is not None:
        for unread in unread_fields(document, made, fields):
            yield number, unread


def common_fields(record: dict[str, Any], *, allowed: tuple[str, ...]) -> dict[str, Any]:
    """Common fields of a record as fields of Incoming. Unknown keys are rejected."""
    unknown = next((key for key in record if key not in (*COMMON, *allowed)), None)
    if unknown is not None:
        raise InvalidRecord(
            f"unknown key {unknown!r}; known are {', '.join([*COMMON, *allowed])}.", pointer=f"/{unknown}"
        )
    origin = record.get("origin", "imported")
    if origin not in _ORIGINS:
        raise InvalidRecord(f"unknown origin {origin!r}; known are {', '.join(_ORIGINS)}.", pointer="/origin")
    return {
        "task": task_of(record),
        "annotator": _text(record, "annotator", 254) or "unknown",
        "campaign": _text(record, "campaign", 200),
        "item": _text(record, "item", 200),
        "origin": cast_origin(origin),
    }


def cast_origin(origin: str) -> Origin:
    return origin  # type: ignore[return-value]


def _text(record: dict[str, Any], name: str, longest: int) -> str | None:
    value = optional_str(record.get(name), pointer=f"/{name}")
    if value is not None and len(value) > longest:
        raise InvalidRecord(f"has {len(value)} characters; at most {longest} are kept.", pointer=f"/{name}")
    return value


def task_of(record: dict[str, Any]) -> Task | None:
    raw = record.get("task")
    if raw is None:
        return None
    task = convert(raw, Task, pointer="/task")
    if not task.id or len(task.id) > 200:
        raise InvalidRecord("the id of a task has 1 to 200 characters.", pointer="/task/id")
    return task


def place(value: Any, pointer: str, task: Task | None) -> Trajectory | TrajectoryId:
    """A trajectory in any ITEM form with text. pointer: of the value in the record."""
    if value is None:
        raise InvalidRecord(
            f'{pointer[1:]} is missing; give an item such as {{"messages": [...]}}.', pointer=pointer
        )
    item: ScoreInput = parse_item(value, task=task, pointer=pointer)
    content = item.content
    if isinstance(content, TrajectoryId):
        return content
    if task is None and not (isinstance(content, Trajectory) and content.task.id):
        raise InvalidRecord(
            "task is missing; a trajectory needs one to be compared and split by.", pointer="/task"
        )
    if isinstance(content, Text):
        content = parse_item({"prompt": "", "response": content.text}, task=task, pointer=pointer).content
    if not isinstance(content, Trajectory):
        raise InvalidRecord(
            "has no text; send messages, a trajectory, or a prompt and its response.",
            pointer=pointer,
        )
    return replace(content, metadata=content.metadata | item.metadata)
