"""The record formats of the feedback types: `pairs`, `rankings`, `steps`, `rubric`, `comments`, `ratings`."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO

from apps.annotation.feedback.incoming import Incoming
from apps.annotation.feedback.readers.json_lines import common_fields, place, read_json_lines
from apps.annotation.feedback_types import FEEDBACK_TYPES, AnyFeedbackType
from workers.errors import InvalidRecord
from workers.schema.decode import convert, require_object

RecordReader = Callable[[BinaryIO], Iterator[tuple[int, Incoming | InvalidRecord]]]


def parse(kind: AnyFeedbackType, record: dict[str, Any]) -> Iterator[Incoming]:
    common = common_fields(record, allowed=kind.record_keys) | _made(record)
    places, value = kind.read_record(record, partial(place, task=common["task"]))
    yield Incoming(kind=kind.name, places=places, value=value, **common)


def _made(record: dict[str, Any]) -> dict[str, Any]:
    """The provenance of an exported record that an import needs."""
    made = record.get("made")
    if made is None:
        return {}
    made = require_object(made)
    purpose = made.get("purpose", "work")
    if purpose not in ("work", "gold", "practice", "example"):
        raise InvalidRecord(
            f"unknown purpose {purpose!r}; allowed are work, gold, practice and example.",
            pointer="/made/purpose",
        )
    explanation = convert(made.get("explanation", ""), str, pointer="/made/explanation")
    return {
        "is_adjudication": made.get("adjudication") is True,
        "purpose": purpose,
        "explanation": explanation,
    }


def reader(kind: AnyFeedbackType) -> RecordReader:
    return lambda stream: read_json_lines(stream, partial(parse, kind))


BY_FORMAT: dict[str, RecordReader] = {kind.import_format: reader(kind) for kind in FEEDBACK_TYPES.values()}
