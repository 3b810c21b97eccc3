"""Runs that are logged event by event: each record of a file is one event, and a run is many records."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from tempfile import SpooledTemporaryFile
from typing import Any

from apps.trajectories.formats.record import Record, encoded, too_large

ALONE = ""  # the key of a record that is a run of its own
_IN_MEMORY = 16 * 2**20
_Place = tuple[int, int]


_NO_ANSWER = "a run in which the agent did nothing; the file has others in which it did"


@dataclass(slots=True)
class _Run:
    """line, source, pointer: of the first event. places: offset and length of each event as it was sent, and of what is
    read instead where that is something else. has_key: whether its key names it, not its file. answered: whether an
    agent did something."""

    line: int
    source: str = ""
    pointer: str = ""
    is_list: bool = False
    has_key: bool = False
    answered: bool = False
    size: int = 0
    places: list[tuple[_Place, _Place | None]] = field(default_factory=list)

    def add_run(self, other: "_Run") -> None:
        """What comes after it."""
        self.size += other.size
        self.places += other.places
        self.answered = self.answered or other.answered


class EventLog:
    """Takes in events and gives a record for each run: a list of its events in their order, whose own bytes are theirs
    as JSON lines. A record that is a list of objects already is a run of its own; one that could not be read is not in
    it.

    whole: whether a record is a run of its own although it is no list: its document stays as it is.
    key: the run that an event belongs to, None where it is the run of the event before in its file or array, or of the
    first after it that has a key; runs of several files of an archive are one where the keys are equal. answers:
    whether an event is what an agent did; runs without one are left out, and named, where others have one. limit: bytes
    that a run may have.
    """

    def __init__(
        self,
        limit: int,
        *,
        key: Callable[[Any], str | None],
        answers: Callable[[Any], bool] | None = None,
        whole: Callable[[Any], bool] = lambda document: False,
    ) -> None:
        self._limit, self._key, self._answers, self._whole = limit, key, answers, whole
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 closed by __del__
        self._runs: dict[str, _Run] = {}
        self._last, self._source = "", ""

    def add(self, record: Record) -> None:
        name = self._name_of(record.document)
        if name is None and (record.source != self._source or _begins_array(record)):
            name = f"file {len(self._runs)}"
        if name is not None and name.startswith("run ") and record.source == self._source:
            self._name_last(name)
        self._last, self._source = self._last if name is None else name, record.source
        run = self._runs.setdefault(
            self._last,
            _Run(
                record.line,
                record.source,
                record.pointer,
                is_list=self._is_run(record.document),
                has_key=self._last.startswith("run "),
            ),
        )
        self._append(run, record)

    def _name_of(self, document: Any) -> str | None:
        if self._is_run(document):
            return f"list {len(self._runs)}"
        key = self._key(document) if isinstance(document, dict) else None
        return None if key is None else f"run {key}"

    def _is_run(self, document: Any) -> bool:
        is_list = isinstance(document, list) and bool(document) and isinstance(document[0], dict)
        return is_list or self._whole(document)

    def _name_last(self, name: str) -> None:
        """Events at the beginning of a file that had no key are of the run of the first that has one."""
        last = self._runs.get(self._last)
        if last is not None and not last.has_key and not last.is_list:
            del self._runs[self._last]
            self._runs.setdefault(name, _Run(last.line, last.source, last.pointer, has_key=True)).add_run(
                last
            )

    def records(self) -> Iterator[Record]:
        has_answers = any(run.answered for run in self._runs.values())
        for run in self._runs.values():
            if self._answers is not None and has_answers and not run.answered:
                yield Record(run.line, skipped=_NO_ANSWER)
            elif run.size > self._limit:
                yield Record(run.line, error=too_large(self._limit), source=run.source)
            else:
                sent = [self._read(*place) for place, _ in run.places]
                events = [
                    json.loads(raw if edited is None else self._read(*edited))
                    for raw, (_, edited) in zip(sent, run.places, strict=True)
                ]
                document, pointer = (events[0], run.pointer) if run.is_list else (events, "")
                yield Record(run.line, b"\n".join(sent), document, pointer, source=run.source)

    def __del__(self) -> None:
        self._file.close()

    def _append(self, run: _Run, record: Record) -> None:
        events = record.document if isinstance(record.document, list) else [record.document]
        run.answered = run.answered or (self._answers is not None and any(map(self._answers, events)))
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


def event_log(
    key: Callable[[Any], str | None] = lambda event: None,
    answers: Callable[[Any], bool] | None = None,
    whole: Callable[[Any], bool] = lambda document: False,
) -> Callable[[int], EventLog]:
    """What a format has as `Gathered`: `Gathered = event_log(key=lambda event: event.get("sessionId"))`. Without a key
    all events of a file are one run. A key may be ALONE."""

    def gather(limit: int) -> EventLog:
        numbers = count()

        def key_of(event: Any) -> str | None:
            found = key(event)
            return f"alone {next(numbers)}" if found == ALONE else found

        return EventLog(limit, key=key_of, answers=answers, whole=whole)

    return gather
