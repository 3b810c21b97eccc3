"""Rows of public data sets, whose answers are trajectories and whose labels are feedback.

The trajectories are those that `import_trajectories` reads from the same row; a reader adds what the labels mean.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Protocol

from apps.annotation.feedback.incoming import Found, Incoming
from apps.annotation.feedback.readers.row_coverage import RowFields
from apps.annotation.feedback.readers.trajectory_files import read_trajectory_files
from apps.annotation.feedback_types.pairwise import PreferenceValue
from apps.trajectories.field_coverage import PathPatterns
from apps.trajectories.serialization import with_task_id
from workers.errors import InvalidRecord
from workers.schema import Choice, Trajectory
from workers.schema.decode import json_type_name

Places = tuple[Trajectory, ...]
Labels = Callable[[dict[str, Any], Places], Iterable[Incoming]]
Reader = Callable[[BinaryIO], Iterator[tuple[int, Found]]]


class RowFormat(Protocol):
    """A module of `apps.trajectories.formats.data_rows`, which may have a `split`."""

    SIGN: str
    READ: tuple[str, ...]

    def sniff(self, document: Any) -> bool: ...

    def read(self, document: Any) -> Trajectory: ...


def row_trajectories(format: RowFormat, row: dict[str, Any]) -> Places:
    """The trajectories of a row, in the order of its answers. Raises InvalidRecord."""
    if not format.sniff(row):
        raise InvalidRecord(f"is no row of this format; expected is {format.SIGN}.")
    split = getattr(format, "split", None)
    parts = [("", row)] if split is None else split(row)
    return tuple(with_task_id(format.read(part)) for _, part in parts)


def answer_reader(format: RowFormat, labels: Labels, read: Iterable[str]) -> Reader:
    """read: patterns of the fields that the labels are read from."""
    fields = RowFields(PathPatterns([*format.READ, *read]))

    def parse(row: dict[str, Any]) -> Iterator[Incoming]:
        yield from labels(row, row_trajectories(format, row))

    return lambda stream: read_trajectory_files(stream, parse, fields)


def preference(
    places: Places, choice: Choice, annotator: str, *, strength: int = 1, criterion: str | None = None
) -> Incoming:
    """A comparison of the two answers of a row. Raises InvalidRecord where there are not two."""
    if len(places) != 2:
        raise InvalidRecord(
            f"has {len(places)} answer{'' if len(places) == 1 else 's'}; a comparison needs two."
        )
    value = PreferenceValue(choice=choice, strength=strength, criterion=criterion)  # type: ignore[arg-type]
    return Incoming(kind="pairwise", task=places[0].task, places=places, annotator=annotator, value=value)


def label_number(row: dict[str, Any], name: str, *, pointer: str = "") -> float:
    """A label that is a number, also as text. Raises InvalidRecord where it is missing or something else."""
    value = row.get(name)
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            value = row[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e12:
        what = "it is missing" if value is None else f"got {json_type_name(value)}"
        raise InvalidRecord(
            f"{name} must be a number, but {what}; leave rows without a label out.",
            pointer=f"{pointer}/{name}",
        )
    return float(value)


def by_sign(number: float) -> Choice:
    """The choice of a number that is below 0 where the first answer is better."""
    return "tie" if number == 0 else "a" if number < 0 else "b"
