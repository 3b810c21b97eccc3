"""Reading labels from trajectory files."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

from apps.annotation.feedback.incoming import Incoming
from apps.trajectories.import_reader import read_import_records
from workers.errors import InvalidRecord
from workers.schema import Trajectory, clean
from workers.schema.decode import require_object

Parse = Callable[[dict[str, Any]], Iterable[Incoming]]


def read_trajectory_files(stream: BinaryIO, parse: Parse) -> Iterator[tuple[int, Incoming | InvalidRecord]]:
    """Records of all inputs that trajectories are read from: documents, arrays, JSON lines and archives of them."""
    for record in read_import_records(stream):
        if record.skipped:
            continue
        try:
            if record.error is not None:
                raise record.error
            document, _ = clean(require_object(record.document))
            for incoming in parse(document):
                yield record.line, incoming
        except InvalidRecord as error:
            yield record.line, error.at(record.pointer)


def step_of(trajectory: Trajectory, message: int) -> int:
    """The step of a message of the source, counted from 0; results of a call are in the step of the call."""
    return max(
        (index for index, step in enumerate(trajectory.steps) if step.extra["source_index"] <= message),
        default=0,
    )
