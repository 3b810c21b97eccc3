"""Reads a stream into trajectories ready to be written, and invalid records."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import zstandard
from django.conf import settings

from apps.core.storage.unpacking import InputBounds
from apps.trajectories import formats, writer
from apps.trajectories.formats.record import Record, encoded
from apps.trajectories.formats.stream import read_records
from workers.errors import InvalidRecord
from workers.schema import Trajectory
from workers.schema.decode import escape


@dataclass(slots=True)
class ImportReader:
    """Reads records of one format, or of the format detected from the first readable record."""

    format: formats.Format | None
    detected: bool = False
    compressor: zstandard.ZstdCompressor = field(default_factory=lambda: zstandard.ZstdCompressor(level=3))
    gathered: formats.Gatherer | None = None

    def prepare(self, record: Record) -> writer.PreparedTrajectory:
        """Raises InvalidRecord with the pointer into the whole document."""
        try:
            return writer.prepare_trajectory(self.read(record), record.raw, self.compressor)
        except InvalidRecord as error:
            if error.pointer is None:
                error.pointer = _not_finite(record.document)
            raise error.at(record.pointer) from None
        except RecursionError:
            raise InvalidRecord("nested too deeply to be read.", pointer=record.pointer) from None

    def parts(self, record: Record) -> Iterator[Record]:
        """A record for each trajectory of a record: itself, where its format holds one a document; none yet where
        others may belong to it."""
        try:
            format = None if record.error is not None else self._format_of(record)
            if format is not None and format.gather is not None:
                self.gathered = self.gathered or format.gather(settings.MAX_RECORD_BYTES)
                self.gathered.add(record)
                return
            if format is None or format.split is None:
                yield record
                return
            for pointer, document in format.split(record.document):
                yield Record(record.line, encoded(document), document, record.pointer + pointer)
        except InvalidRecord as error:
            yield Record(record.line, record.raw, pointer=record.pointer, error=error)

    def rest(self) -> Iterator[Record]:
        """After the last record: what was gathered."""
        if self.gathered is not None:
            yield from self.gathered.records()

    def read(self, record: Record) -> Trajectory:
        if record.error is not None:
            raise record.error
        return self._format_of(record).read(record.document)

    def _format_of(self, record: Record) -> formats.Format:
        if self.format is None:
            self.format, self.detected = formats.detect(record.document), True
        return self.format


def read_import_records(
    stream: BinaryIO, *, first_line: int = 1, bounds: InputBounds | None = None
) -> Iterator[Record]:
    return read_records(stream, limit=settings.MAX_RECORD_BYTES, first_line=first_line, bounds=bounds)


def _not_finite(value: Any, pointer: str = "") -> str | None:
    """The pointer to the first number that is not finite."""
    if isinstance(value, float):
        return None if math.isfinite(value) else pointer
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        if (found := _not_finite(item, f"{pointer}/{escape(str(key))}")) is not None:
            return found
    return None
