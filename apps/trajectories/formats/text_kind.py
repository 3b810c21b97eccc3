"""Runs written as text for people, not as JSON: how a file of them is recognised and cut into records."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from apps.trajectories.formats.record import Record, encoded, too_large
from workers.errors import InvalidRecord

_ONLY_EMPTY = "has no run in which the agent did anything"
_DID_NOTHING = "a run in which the agent did nothing; the file has others in which it did"


@dataclass(frozen=True, slots=True)
class TextKind:
    """begins: whether a file with this beginning is of the kind. starts: whether a line is the first of a run.
    read: from the lines of a run to its document; None if the agent did nothing in it. Raises InvalidRecord.
    is_told: whether such runs are named; else they are no runs, such as the end mark of a stream."""

    name: str
    begins: Callable[[str], bool]
    starts: Callable[[str], bool]
    read: Callable[[list[str]], Any]
    is_told: bool = True


def read_text(kind: TextKind, stream: BinaryIO, limit: int, first_line: int = 1) -> Iterator[Record]:
    """A record for each run. limit: bytes that a run may have."""
    empty: list[int] = []
    was_read = False
    for line, lines in _runs(kind, stream, limit, first_line):
        record = _record(kind, line, lines, limit)
        if record is None:
            empty.append(line)
            continue
        was_read = True
        yield record
    if kind.is_told:
        yield from (Record(line, skipped=_DID_NOTHING) for line in empty if was_read)
    if not was_read:
        yield Record(first_line, error=InvalidRecord(f"{kind.name} {_ONLY_EMPTY}; leave the file out."))


def _record(kind: TextKind, line: int, lines: list[str] | None, limit: int) -> Record | None:
    if lines is None:
        return Record(line, error=too_large(limit))
    try:
        document = kind.read(lines)
    except InvalidRecord as error:
        return Record(line, error=error)
    return None if document is None else Record(line, encoded(document), document)


def _runs(
    kind: TextKind, stream: BinaryIO, limit: int, number: int
) -> Iterator[tuple[int, list[str] | None]]:
    """The lines of each run with the number of the first; None for those of a run that is too large."""
    lines: list[str] = []
    first, size = number, 0
    while raw := stream.readline(limit + 1):
        line = raw.decode("utf-8-sig" if number == first else "utf-8", "replace")
        if kind.starts(line) and any(each.strip() for each in lines):
            yield first, None if size > limit else lines
            lines, first, size = [], number, 0
        size += len(raw)
        if size <= limit:
            lines.append(line)
        number += raw.endswith(b"\n")
    if size:
        yield first, None if size > limit else lines
