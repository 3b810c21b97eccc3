"""A file in chunks of trajectories ready to be written; what is large is prepared by other processes.

Finding out what is in a record takes longer than writing it. A file of some thousand trajectories is worth the start of
processes that prepare its further chunks, while this one reads ahead and the database writes.
"""

import logging
import multiprocessing
import os
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import islice

from django.conf import settings

from apps.core.processes import pool_process
from apps.trajectories.field_coverage import FieldCounts
from apps.trajectories.formats.record import Record
from apps.trajectories.import_reader import ImportReader
from apps.trajectories.writer import PreparedTrajectory
from workers.errors import InvalidRecord

logger = logging.getLogger(__name__)
CHUNK, CHUNK_BYTES = 1000, 8 * 2**20  # trajectories, and bytes of documents, written at a time
_EVENTS = 10  # times as many records, where a trajectory is many of them
_PREPARED_HERE = 4  # chunks of a file before processes are started
_PIECES = 4  # of a chunk, prepared at the same time


@dataclass(slots=True)
class PreparedRecords:
    """good: by the name of their format. bad: (line, error). dropped, kept, masked: as ImportReader counts them."""

    good: dict[str, list[PreparedTrajectory]] = field(default_factory=dict)
    bad: list[tuple[int, InvalidRecord]] = field(default_factory=list)
    dropped: FieldCounts = field(default_factory=FieldCounts)
    kept: FieldCounts = field(default_factory=FieldCounts)
    masked: Counter[str] = field(default_factory=Counter)

    def add(self, other: "PreparedRecords") -> None:
        for name, prepared in other.good.items():
            self.good.setdefault(name, []).extend(prepared)
        self.bad += other.bad
        self.dropped.add_all(other.dropped)
        self.kept.add_all(other.kept)
        self.masked += other.masked


@dataclass(slots=True)
class PreparedChunk(PreparedRecords):
    """read: how many records of the file it was made of."""

    read: int = 0


@dataclass(slots=True)
class _Chunk:
    """parts: of records, one for each trajectory."""

    parts: list[Record] = field(default_factory=list)
    read: int = 0
    size: int = 0

    def add(self, part: Record) -> None:
        self.parts.append(part)
        self.size += len(part.raw)

    @property
    def is_full(self) -> bool:
        is_large = len(self.parts) >= CHUNK or self.size >= CHUNK_BYTES
        return is_large or self.read >= _EVENTS * CHUNK


def prepared_chunks(reader: ImportReader, records: Iterable[Record]) -> Generator[PreparedChunk]:
    """In the order of the file. What is dropped and kept of the file, not of a trajectory, is counted by the reader."""
    chunks = _chunks(reader, records)
    if settings.IMPORT_PROCESSES < 1 or not reader.is_public or reader.detectors:
        yield from (_prepared_here(reader, chunk) for chunk in chunks)
        return
    for chunk in islice(chunks, _PREPARED_HERE):
        yield _prepared_here(reader, chunk)
    with ExitStack() as stack:
        pool = None
        for chunk in chunks:
            pool = pool or stack.enter_context(_Pool(reader))
            yield from pool.add(chunk)
        if pool is not None:
            yield from pool.rest()


def _chunks(reader: ImportReader, records: Iterable[Record]) -> Iterator[_Chunk]:
    chunk = _Chunk()
    for record in records:
        chunk.read += 1
        for part in reader.parts(record):
            chunk.add(part)
        if chunk.is_full:
            yield chunk
            chunk = _Chunk()
    for part in reader.rest():
        chunk.add(part)
        if chunk.is_full:
            yield chunk
            chunk = _Chunk()
    if chunk.read or chunk.parts:
        yield chunk


def _prepared_here(reader: ImportReader, chunk: _Chunk) -> PreparedChunk:
    found = PreparedChunk(read=chunk.read)
    found.add(prepare_records(chunk.parts, reader))
    return found


def prepare_records(parts: Iterable[Record], reader: ImportReader | None = None) -> PreparedRecords:
    """reader: without one, each record is read by the format that it names."""
    reader = reader or ImportReader(None)
    found = PreparedRecords()
    before = reader.dropped, reader.kept, reader.masked
    reader.dropped, reader.kept, reader.masked = found.dropped, found.kept, found.masked
    try:
        for part in parts:
            try:
                prepared = reader.prepare(part)
            except InvalidRecord as error:
                found.bad.append((part.line, _plain(error)))
            else:
                found.good.setdefault(reader.format_name(part), []).append(prepared)
    finally:
        found.masked = reader.masked
        reader.dropped, reader.kept, reader.masked = before
    return found


def _plain(error: InvalidRecord) -> InvalidRecord:
    """As one that can be sent to another process."""
    return InvalidRecord(error.message, pointer=error.pointer)


class _Pool:
    """Prepares chunks in other processes, a few ahead, and gives them back in order."""

    def __init__(self, reader: ImportReader) -> None:
        self._reader = reader
        self._executor = ProcessPoolExecutor(
            settings.IMPORT_PROCESSES,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=pool_process.begin,
            initargs=(os.getpid(),),
        )
        self._is_broken = False
        self._waiting: deque[tuple[_Chunk, list[Future[PreparedRecords]]]] = deque()

    def __enter__(self) -> "_Pool":
        return self

    def __exit__(self, *error: object) -> None:
        self._executor.shutdown(cancel_futures=True)

    def add(self, chunk: _Chunk) -> Iterator[PreparedChunk]:
        self._waiting.append((chunk, self._submitted(chunk)))
        if len(self._waiting) > 1:
            yield self._first()

    def rest(self) -> Iterator[PreparedChunk]:
        while self._waiting:
            yield self._first()

    def _submitted(self, chunk: _Chunk) -> list[Future[PreparedRecords]]:
        if self._is_broken:
            return []
        size = -(-len(chunk.parts) // _PIECES) or 1
        parts = [
            part if part.error is None else replace(part, error=_plain(part.error)) for part in chunk.parts
        ]
        pieces = [parts[start : start + size] for start in range(0, len(parts), size)]
        try:
            return [self._executor.submit(prepare_records, piece) for piece in pieces]
        except BrokenProcessPool:
            self._note_end()
            return []

    def _first(self) -> PreparedChunk:
        chunk, pieces = self._waiting.popleft()
        found = PreparedChunk(read=chunk.read)
        try:
            results = [piece.result() for piece in pieces]
        except BrokenProcessPool:
            self._note_end()
            results = []
        for result in results:
            found.add(result)
        return found if results or not chunk.parts else _prepared_here(self._reader, chunk)

    def _note_end(self) -> None:
        if not self._is_broken:
            logger.warning("A process that prepared an import ended; the rest is prepared by this one.")
        self._is_broken = True
