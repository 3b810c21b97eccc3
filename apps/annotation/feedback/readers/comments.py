"""`comments`: {"task", "trajectory": ITEM, "text", "anchor"?, "sign"?, "annotator"}, JSON lines.

anchor: {"steps": [from, to], "quote"?, "chars"?: [start, end]}; `step` counts all steps from 0, inclusive.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO

from apps.annotation.feedback.incoming import CommentValue, Incoming
from apps.annotation.feedback.readers.lines import common_fields, place, read_json_lines
from workers.errors import InvalidRecord
from workers.schema import Trajectory
from workers.schema.decode import convert


def read(stream: BinaryIO) -> Iterator[tuple[int, Incoming | InvalidRecord]]:
    return read_json_lines(stream, parse)


def parse(record: dict[str, Any]) -> Iterator[Incoming]:
    common = common_fields(record, allowed=("trajectory", "text", "anchor", "sign"))
    trajectory = place(record, "trajectory", common["task"])
    value = convert({key: record[key] for key in ("text", "anchor", "sign") if key in record}, CommentValue)
    if not value.text.strip():
        raise InvalidRecord("the text of a comment is empty.", pointer="/text")
    check_anchor(value, len(trajectory.steps) if isinstance(trajectory, Trajectory) else None)
    yield Incoming(kind="comment", places=(trajectory,), value=value, **common)


def check_anchor(value: CommentValue, steps: int | None) -> None:
    """first <= last, both within the trajectory where its length is known. Raises InvalidRecord."""
    if value.anchor is None:
        return
    first, last = value.anchor.steps
    if first < 0 or last < first:
        raise InvalidRecord(
            f"the steps {first} to {last} are no range; count from 0, first to last.", pointer="/anchor/steps"
        )
    if steps is not None and last >= steps:
        raise InvalidRecord(
            f"step {last} is beyond the last one, {steps - 1}; steps count from 0.", pointer="/anchor/steps"
        )
    if value.anchor.chars is not None and not 0 <= value.anchor.chars[0] < value.anchor.chars[1]:
        raise InvalidRecord("chars are [start, end), counted from 0.", pointer="/anchor/chars")
