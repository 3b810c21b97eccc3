"""Reading labels from trajectory files."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

from apps.annotation.feedback.incoming import Found, Incoming, UnreadField
from apps.annotation.feedback.readers.json_lines import read_row
from apps.annotation.feedback.readers.row_coverage import RowFields
from apps.trajectories.import_reader import read_import_records
from workers.schema import Trajectory

Parse = Callable[[dict[str, Any]], Iterable[Incoming]]


def read_trajectory_files(
    stream: BinaryIO, parse: Parse, fields: RowFields | None = None
) -> Iterator[tuple[int, Found]]:
    """Records of all inputs that trajectories are read from: documents, arrays, JSON lines and archives of them."""
    for record in read_import_records(stream):
        if record.skipped:
            yield record.line, UnreadField(record.pointer, "dropped", record.skipped)
        elif record.error is not None:
            yield record.line, record.error.at(record.pointer)
        else:
            yield from read_row(record.line, record.document, parse, fields, pointer=record.pointer)


def step_of(trajectory: Trajectory, message: int) -> int:
    """The step of a message of the source, counted from 0; results of a call are in the step of the call."""
    return max(
        (index for index, step in enumerate(trajectory.steps) if step.extra["source_index"] <= message),
        default=0,
    )
