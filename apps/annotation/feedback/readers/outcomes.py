"""`outcomes`: {"task", "trajectory": ITEM, "success", "reward"?}: written to the trajectory."""

from collections.abc import Iterator
from typing import Any, BinaryIO

from apps.annotation.feedback.incoming import Found, Incoming, OutcomeValue
from apps.annotation.feedback.readers.json_lines import common_fields, place, read_json_lines
from apps.annotation.feedback.readers.record_formats import PLACE_FIELDS
from workers.schema.decode import convert, finite


def read(stream: BinaryIO) -> Iterator[tuple[int, Found]]:
    return read_json_lines(stream, parse, PLACE_FIELDS)


def parse(record: dict[str, Any]) -> Iterator[Incoming]:
    common = common_fields(record, allowed=("trajectory", "success", "reward"))
    finite(record.get("reward"), pointer="/reward")
    value = convert({key: record[key] for key in ("success", "reward") if key in record}, OutcomeValue)
    trajectory = place(record.get("trajectory"), "/trajectory", common["task"])
    yield Incoming(kind="outcome", places=(trajectory,), value=value, **common)
