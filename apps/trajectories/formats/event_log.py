"""Runs that are logged event by event: each record of a file is one event, and a run is many records."""

import json
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from apps.trajectories.formats.record import Record, encoded, too_large
from apps.trajectories.formats.spool import START, ChainedSpool

ALONE = ""  # the key of a record that is a run of its own
RunKey = Callable[[Any], str | None]
_NO_ANSWER = "a run in which the agent did nothing; the file has others in which it did"


def same_file(source: str) -> str:
    """What `EventLog` has as `within` where a run ends with its file."""
    return source


@dataclass(slots=True)
class _Run:
    """line, source, pointer: of the first event. end: of its events in the spool. alone: the record that is the run.
    is_list: whether its document is that of one record. has_key: whether its key names it, not its file. answered:
    whether an agent did something."""

    line: int
    source: str = ""
    pointer: str = ""
    is_list: bool = False
    has_key: bool = False
    answered: bool = False
    size: int = 0
    end: int = START
    alone: Record | None = None


class EventLog:
    """Takes in events and gives a record for each run: a list of its events in their order, whose own bytes are theirs
    as JSON lines. A record that is a list of objects already is a run of its own; one that could not be read is not in
    it. In memory are the runs that are not over, without their events.

    limit: bytes that a run may have. new_key: makes what says to which run an event belongs; None where it is the run
    of the event before in its file or array, or of the first after it that has a key. whole: whether a record is a run
    of its own although it is no list: its document stays as it is. answers: whether an event is what an agent did; runs
    without one are left out, and named, where others have one. within: of the name of a file, the name of what a run
    with a key does not go on outside of; None where it may go on in any file of an archive.
    """

    def __init__(
        self,
        limit: int,
        *,
        new_key: Callable[[], RunKey],
        answers: Callable[[Any], bool] | None = None,
        whole: Callable[[Any], bool] = lambda document: False,
        within: Callable[[str], str] | None = None,
    ) -> None:
        self._limit, self._new_key, self._answers, self._whole = limit, new_key, answers, whole
        self._within = within
        self._key = new_key()
        self._spool = ChainedSpool()
        self._runs: dict[str, _Run] = {}
        self._over: deque[_Run] = deque()
        self._unanswered: deque[_Run] = deque()  # runs that are over, while no run has an answer
        self._last, self._source, self._has_answers, self._count = "", "", False, 0

    def add(self, record: Record) -> None:
        self._count += 1
        name = self._name_of(record.document)
        if name == ALONE:
            self._close_last()
            self._last, self._source = "", record.source
            self._add_alone(record)
            return
        if name is None and (not self._last or record.source != self._source or _begins_array(record)):
            self._close_last()
            name = f"file {self._count}"
        if name is not None and name.startswith("run ") and record.source == self._source:
            self._name_last(name)
        self._last, self._source = self._last if name is None else name, record.source
        has_key = self._last.startswith("run ")
        new = _Run(record.line, record.source, record.pointer, has_key=has_key)
        self._append(self._runs.setdefault(self._last, new), record)

    def ready(self, source: str) -> Iterator[Record]:
        """The runs that are over, where the next record is of the file `source`."""
        if source != self._source:
            self._end_file(source)
        yield from self._given()

    def records(self) -> Iterator[Record]:
        """All runs that were not given yet."""
        self._over.extend(self._runs.values())
        self._runs = {}
        yield from self._given()
        while self._unanswered:
            yield self._record(self._unanswered.popleft())

    def _name_of(self, document: Any) -> str | None:
        if self._is_run(document):
            return ALONE
        key = self._key(document) if isinstance(document, dict) else None
        return key if key is None or key == ALONE else f"run {key}"

    def _is_run(self, document: Any) -> bool:
        is_list = isinstance(document, list) and bool(document) and isinstance(document[0], dict)
        return is_list or self._whole(document)

    def _name_last(self, name: str) -> None:
        """Events at the beginning of a file that had no key are of the run of the first that has one."""
        last = self._runs.get(self._last)
        if last is None or last.has_key:
            return
        del self._runs[self._last]
        run = self._runs.get(name)
        if run is None:
            self._runs[name] = replace(last, has_key=True)
            return
        for sent, read_instead in self._spool.entries(last.end):
            run.end = self._spool.add(run.end, sent, read_instead)
        run.size += last.size
        run.answered = run.answered or last.answered

    def _close_last(self) -> None:
        """No further event is of the run of the one before, unless it has the key of that."""
        last = self._runs.get(self._last)
        if last is not None and not last.has_key:
            self._over.append(self._runs.pop(self._last))

    def _end_file(self, source: str) -> None:
        is_outside = self._within is not None and self._within(source) != self._within(self._source)
        self._close_last()  # all others have a key
        if is_outside:
            self._over.extend(self._runs.values())
            self._runs = {}
            self._key = self._new_key()
        self._last, self._source = "", source

    def _given(self) -> Iterator[Record]:
        """Of the runs that are over."""
        while self._over:
            run = self._over.popleft()
            if self._answers is None or run.answered:
                yield self._record(run)
            elif self._has_answers:
                yield Record(run.line, skipped=_NO_ANSWER)
            else:
                self._unanswered.append(self._spooled(run))
        while self._unanswered and self._has_answers:
            yield Record(self._unanswered.popleft().line, skipped=_NO_ANSWER)
        if not self._runs and not self._unanswered:
            self._spool.clear()

    def _record(self, run: _Run) -> Record:
        if run.size > self._limit:
            return Record(run.line, error=too_large(self._limit), source=run.source)
        if run.alone is not None:
            sent, events = [run.alone.raw.strip()], [run.alone.document]
        else:
            entries = self._spool.entries(run.end)
            sent = [each for each, _ in entries]
            events = [json.loads(read_instead or each) for each, read_instead in entries]
        document, pointer = (events[0], run.pointer) if run.is_list else (events, "")
        return Record(run.line, b"\n".join(sent), document, pointer, source=run.source)

    def _add_alone(self, record: Record) -> None:
        run = _Run(record.line, record.source, record.pointer, is_list=self._is_run(record.document))
        run.alone, run.size = record, len(record.raw) + 1
        self._look_for_answer(run, record)
        self._over.append(self._spooled(run) if self._over else run)

    def _append(self, run: _Run, record: Record) -> None:
        self._look_for_answer(run, record)
        run.size += len(record.raw) + 1
        if run.size <= self._limit:
            run.end = self._spool.add(run.end, *_entry(record))

    def _spooled(self, run: _Run) -> _Run:
        """A run that waits, out of memory."""
        if run.alone is None or run.size > self._limit:
            return replace(run, alone=None)
        return replace(run, alone=None, end=self._spool.add(START, *_entry(run.alone)))

    def _look_for_answer(self, run: _Run, record: Record) -> None:
        if self._answers is None or run.answered:
            return
        events = record.document if isinstance(record.document, list) else [record.document]
        run.answered = any(map(self._answers, events))
        self._has_answers = self._has_answers or run.answered


def _entry(record: Record) -> tuple[bytes, bytes]:
    """What a spool has of an event."""
    return record.raw.strip(), encoded(record.document) if record.is_edited else b""


def _begins_array(record: Record) -> bool:
    """Whether it is the first element of an array of events, of which a file may have several; not of one that names
    what its event is, as recorded calls of an SDK do."""
    return record.pointer.rpartition("/")[2] == "0" and isinstance(record.document, dict)


def event_log(
    key: RunKey = lambda event: None,
    answers: Callable[[Any], bool] | None = None,
    whole: Callable[[Any], bool] = lambda document: False,
    within: Callable[[str], str] | None = None,
) -> Callable[[int], EventLog]:
    """What a format has as `Gathered`: `Gathered = event_log(key=lambda event: event.get("sessionId"))`. Without a key
    all events of a file are one run. A key may be ALONE."""

    def gather(limit: int) -> EventLog:
        return EventLog(limit, new_key=lambda: key, answers=answers, whole=whole, within=within)

    return gather
