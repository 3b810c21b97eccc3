"""Reads what `frozen_records` writes: records as JSON texts, in files with their trajectories in another form."""

from collections.abc import Sequence
from typing import Any

from apps.annotation.feedback.incoming import Incoming, RowKey, StoredTrajectory
from apps.annotation.feedback.readers import record_formats
from apps.annotation.feedback_types import FEEDBACK_TYPES
from workers.errors import InvalidRecord
from workers.schema import Trajectory, parse_json
from workers.schema.decode import clean, convert, require_list, require_object


def read_record_text(text: Any, sent: Sequence[Trajectory | None], *, pointer: str) -> Incoming:
    """The record of a text, or of the object in it. sent: its trajectories as the other form has them, where it has.

    Raises InvalidRecord.
    """
    try:
        record: dict[str, Any] = clean(require_object(parse_json(text) if isinstance(text, str) else text))[0]
        return _read(record, sent)
    except InvalidRecord as error:
        raise error.at(pointer) from None


def _read(record: dict[str, Any], sent: Sequence[Trajectory | None]) -> Incoming:
    kind = FEEDBACK_TYPES.get(str(record.get("kind")))
    if kind is None:
        raise InvalidRecord(f"the kind of a record is one of {', '.join(FEEDBACK_TYPES)}.", pointer="/kind")
    places = [
        _stored(raw, sent[number] if number < len(sent) else None)
        for number, raw in enumerate(require_list(record.get("trajectories"), pointer="/trajectories"))
    ]

    def place(value: Any, at: str) -> StoredTrajectory:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < len(places):
            raise InvalidRecord("expected an index into trajectories.", pointer=at)
        return places[value]

    rest = {"made": {}} | {
        key: value for key, value in record.items() if key not in ("kind", "this", "trajectories")
    }
    return record_formats.parse_places(kind, rest, place)


def _stored(raw: Any, sent: Trajectory | None) -> StoredTrajectory:
    raw = require_object(raw)
    content = convert(raw.get("content"), str, pointer="/trajectories/content")
    number = convert(raw.get("number"), RowKey | None, pointer="/trajectories/number")  # type: ignore[arg-type]
    return StoredTrajectory(content_hash=content, number=number, sent=sent)
