"""Reads a stream into trajectories ready to be written, and invalid records; counts what of it is not read."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

import zstandard
from django.conf import settings

from apps.core.storage.unpacking import InputBounds
from apps.trajectories import field_coverage, formats, writer
from apps.trajectories.field_coverage import FieldCounts, FieldUse
from apps.trajectories.formats.record import Record, encoded
from apps.trajectories.formats.stream import read_records
from workers.errors import InvalidRecord
from workers.schema import Trajectory, clean
from workers.schema.decode import escape
from workers.schema.tool_results import ORPHAN


@dataclass(slots=True)
class ImportReader:
    """Reads records of one format, or of the format detected from the first readable record.

    dropped: fields that are in no trajectory. kept: fields that no one is shown, in `extra` or the metadata.
    """

    format: formats.Format | None
    detected: bool = False
    compressor: zstandard.ZstdCompressor = field(default_factory=lambda: zstandard.ZstdCompressor(level=3))
    gathered: formats.Gatherer | None = None
    dropped: FieldCounts = field(default_factory=FieldCounts)
    kept: FieldCounts = field(default_factory=FieldCounts)

    def prepare(self, record: Record) -> writer.PreparedTrajectory:
        """Raises InvalidRecord with the pointer into the whole document."""
        try:
            trajectory, uses = self.read_fields(record)
            prepared = writer.prepare_trajectory(trajectory, record.raw, self.compressor)
        except InvalidRecord as error:
            raise error.at(record.pointer) from None
        except RecursionError:
            raise InvalidRecord("nested too deeply to be read.", pointer=record.pointer) from None
        for use in uses:
            if use.use == "dropped":
                self.dropped.add(self._source_path(use.path), use.reason)
            elif use.use == "kept":
                self.kept.add(self._source_path(use.path), use.reason or field_coverage.KEPT)
        if orphans := sum(ORPHAN in step.extra for step in trajectory.steps):
            self.kept.add("", field_coverage.ORPHANS, orphans)
        return prepared

    def parts(self, record: Record) -> Iterator[Record]:
        """A record for each trajectory of a record: itself, where its format holds one a document; none yet where
        others may belong to it."""
        if record.skipped:
            self.dropped.add(record.pointer, record.skipped)
            return
        try:
            record = self._with_finite_numbers(record)
            format = None if record.error is not None else self._format_of(record)
            if format is not None and format.gather is not None:
                self.gathered = self.gathered or format.gather(settings.MAX_RECORD_BYTES)
                self.gathered.add(record)
                return
            if format is None or format.split is None:
                yield record
                return
            parts = list(format.split(record.document))
            if len(parts) == 1 and parts[0][1] is record.document:
                yield record  # with its own bytes
                return
            for path in field_coverage.uncovered(record.document, [document for _, document in parts]):
                self.dropped.add(path, field_coverage.OF_NO_TRAJECTORY)
            for pointer, document in parts:
                yield Record(record.line, encoded(document), document, record.pointer + pointer)
        except InvalidRecord as error:
            yield Record(record.line, record.raw, pointer=record.pointer, error=error)

    def rest(self) -> Iterator[Record]:
        """After the last record: what was gathered."""
        if self.gathered is None:
            return
        for record in self.gathered.records():
            if record.skipped:
                self.dropped.add(record.pointer, record.skipped)
            else:
                yield record

    def read(self, record: Record) -> Trajectory:
        return self.read_fields(record)[0]

    def read_fields(self, record: Record) -> tuple[Trajectory, list[FieldUse]]:
        """The trajectory, with the fields that its format does not read in its metadata; what became of each."""
        if record.error is not None:
            raise record.error
        format = self._format_of(record)
        trajectory = format.read(record.document)
        document, _ = clean(record.document)  # as what is in the trajectory
        uses = field_coverage.field_uses(document, trajectory, format.patterns)
        return field_coverage.keep_unread(trajectory, uses)

    def _with_finite_numbers(self, record: Record) -> Record:
        """NaN and infinities are no JSON: null stands for them, and they are counted."""
        if record.error is not None or _is_finite(record.document):
            return record
        return replace(record, document=self._finite(record.document, ""), is_edited=True)

    def _finite(self, value: Any, path: str) -> Any:
        if isinstance(value, float):
            if math.isfinite(value):
                return value
            self.dropped.add(path, field_coverage.NOT_FINITE)
            return None
        if isinstance(value, dict):
            return {key: self._finite(item, f"{path}/{escape(str(key))}") for key, item in value.items()}
        if isinstance(value, list):
            return [self._finite(item, f"{path}/*") for item in value]
        return value

    def _source_path(self, path: str) -> str:
        """Of a field of one of the documents that a file was split into, where it stands in the file."""
        places = self.format.places if self.format else {}
        top = f"/{path.split('/')[1]}" if path else ""
        return places.get(top, top) + path[len(top) :]

    def _format_of(self, record: Record) -> formats.Format:
        if self.format is None:
            self.format, self.detected = formats.detect(record.document), True
        return self.format


def read_import_records(
    stream: BinaryIO, *, first_line: int = 1, bounds: InputBounds | None = None
) -> Iterator[Record]:
    return read_records(stream, limit=settings.MAX_RECORD_BYTES, first_line=first_line, bounds=bounds)


def _is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    return all(map(_is_finite, value)) if isinstance(value, list) else True
