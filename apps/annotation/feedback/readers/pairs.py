"""`pairs`: {"task", "a": ITEM, "b": ITEM, "choice", "strength"?, "criterion"?, "annotator"}, JSON lines."""

from collections.abc import Iterator
from typing import Any, BinaryIO

from apps.annotation.feedback.incoming import Incoming, PreferenceValue
from apps.annotation.feedback.readers.lines import common_fields, place, read_json_lines
from workers.errors import InvalidRecord
from workers.schema.decode import convert


def read(stream: BinaryIO) -> Iterator[tuple[int, Incoming | InvalidRecord]]:
    return read_json_lines(stream, parse)


def parse(record: dict[str, Any]) -> Iterator[Incoming]:
    common = common_fields(record, allowed=("a", "b", "choice", "strength", "criterion"))
    places = (place(record, "a", common["task"]), place(record, "b", common["task"]))
    said = {key: record[key] for key in ("choice", "strength", "criterion") if key in record}
    yield Incoming(kind="pairwise", places=places, value=convert(said, PreferenceValue), **common)
