"""Runs that are logged event by event: each record of a file is one event, and a run is many records."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from tempfile import SpooledTemporaryFile
from typing import Any

from apps.trajectories.formats.record import Record, encoded, too_large

_IN_MEMORY = 16 * 2**20
_Place = tuple[int, int]


@dataclass(slots=True)
class _Run:
    """line: of the first event. places: offset and length of each event as it was sent, and of what is read instead
    where that is something else."""

    line: int
    is_list: bool = False
    size: int = 0
    places: list[tuple[_Place, _Place | None]] = field(default_factory=list)


class EventLog:
    """Takes in events and gives a record for each run: a list of its events in their order, whose own bytes are theirs
    as JSON lines. A record that is a list already is a run of its own; one that could not be read is not in it.

    key: the run that an event belongs to, None where it is the run of the event before in its file or array; runs
    of several files of an archive are one where the keys are equal. limit: bytes that a run may have.
    """

    def __init__(self, limit: int, *, key: Callable[[Any], str | None]) -> None:
        self._limit, self._key = limit, key
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 closed by __del__
        self._runs: dict[str, _Run] = {}
        self._last, self._source = "", ""

    def add(self, record: Record) -> None:
        name = self._name_of(record.document)
        if name is None and (record.source != self._source or _begins_array(record)):
            name = f"file {len(self._runs)}"
        self._last, self._source = self._last if name is None else name, record.source
        run = self._runs.setdefault(self._last, _Run(record.line, is_list=isinstance(record.document, list)))
        self._append(run, record)

    def _name_of(self, document: Any) -> str | None:
        if isinstance(document, list):
            return f"list {len(self._runs)}"
        key = self._key(document)
        return None if key is None else f"run {key}"

    def records(self) -> Iterator[Record]:
        for run in self._runs.values():
            if run.size > self._limit:
                yield Record(run.line, error=too_large(self._limit))
            else:
                sent = [self._read(*place) for place, _ in run.places]
                events = [
                    json.loads(raw if edited is None else self._read(*edited))
                    for raw, (_, edited) in zip(sent, run.places, strict=True)
                ]
                yield Record(run.line, b"\n".join(sent), events[0] if run.is_list else events)

    def __del__(self) -> None:
        self._file.close()

    def _append(self, run: _Run, record: Record) -> None:
        run.size += len(record.raw) + 1
        if run.size <= self._limit:
            sent = self._write(record.raw.strip())
            run.places.append((sent, self._write(encoded(record.document)) if record.is_edited else None))

    def _write(self, raw: bytes) -> _Place:
        place = self._file.tell(), len(raw)
        self._file.write(raw)
        return place

    def _read(self, offset: int, length: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(length)


def _begins_array(record: Record) -> bool:
    """Whether it is the first element of an array, of which a file may have several."""
    return record.pointer.rpartition("/")[2] == "0"


def event_log(key: Callable[[Any], str | None] = lambda event: None) -> Callable[[int], EventLog]:
    """What a format has as `Gathered`: `Gathered = event_log(key=lambda event: event.get("sessionId"))`. Without a key
    all events of a file are one run."""
    return partial(EventLog, key=key)
