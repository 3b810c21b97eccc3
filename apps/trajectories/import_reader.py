"""Reads a stream into trajectories ready to be written, and invalid records; counts what of it is not read."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import zstandard
from django.conf import settings

from apps.core.storage.unpacking import InputBounds
from apps.trajectories import field_coverage, formats, writer
from apps.trajectories.field_coverage import FieldCounts, FieldUse
from apps.trajectories.formats.record import Record, encoded
from apps.trajectories.formats.stated import is_finite
from apps.trajectories.formats.stream import read_records
from apps.trajectories.formats.unknown_file import TextLines, UnknownFile
from apps.trajectories.formats.wrapped import wrapped_records
from apps.trajectories.masking import mask_text, mask_trajectory
from workers.errors import InvalidRecord
from workers.schema import Trajectory, clean, parse_json, to_atif
from workers.schema.decode import escape
from workers.schema.tool_results import ORPHAN

_MOST_HEADERS = 1  # records of no format before the first that holds some under keys


@dataclass(slots=True)
class ImportReader:
    """Reads records of one format, or of the format that each file looks like: records before the first one that is
    recognised (a header, a summary) wait for it.

    detectors: of what is masked; masked: how often each found something.
    format: asked for, or the first that was detected. dropped: fields that are in no trajectory. kept: fields that no
    one is shown, in `extra` or the metadata.
    """

    format: formats.Format | None
    detected: bool = False
    compressor: zstandard.ZstdCompressor = field(default_factory=lambda: zstandard.ZstdCompressor(level=3))
    dropped: FieldCounts = field(default_factory=FieldCounts)
    kept: FieldCounts = field(default_factory=FieldCounts)
    detectors: tuple[str, ...] = ()
    masked: Counter[str] = field(default_factory=Counter)
    _gathered: dict[str, formats.Gatherer] = field(default_factory=dict)
    _unknown: UnknownFile = field(default_factory=UnknownFile)
    _text: TextLines = field(default_factory=TextLines)
    _of_source: formats.Format | None = None
    _of_wrapped: bool = False  # whether that is the format of what its records hold under keys
    _source: str = ""

    @property
    def is_public(self) -> bool:
        """Whether each record names the format it is read by, which another process knows too: no project's mapping."""
        return self.format is None or formats.FORMATS.get(self.format.name) is self.format

    def prepare(self, record: Record) -> writer.PreparedTrajectory:
        """Raises InvalidRecord with the pointer into the whole document."""
        try:
            trajectory, uses = self.read_fields(record)
            raw = record.raw
            if self.detectors:
                trajectory, counts = mask_trajectory(trajectory, self.detectors)
                self.masked += counts
                raw = encoded(to_atif(trajectory))  # the original is not stored
            prepared = writer.prepare_trajectory(trajectory, raw, self.compressor)
        except InvalidRecord as error:
            if self.detectors:
                error = InvalidRecord(mask_text(error.message, self.detectors), pointer=error.pointer)
            raise error.at(record.pointer) from None
        except RecursionError:
            raise InvalidRecord("nested too deeply to be read.", pointer=record.pointer) from None
        format = self._format_of(record)
        for use in uses:
            if use.use == "dropped":
                self.dropped.add(_source_path(format, use.path), use.reason)
            elif use.use == "kept":
                self.kept.add(_source_path(format, use.path), use.kept_reason)
        if orphans := sum(ORPHAN in step.extra for step in trajectory.steps):
            self.kept.add("", field_coverage.ORPHANS, orphans)
        return prepared

    def parts(self, record: Record) -> Iterator[Record]:
        """A record for each trajectory of a record: itself, where its format holds one a document; none yet where
        others may belong to it, or where its file is not recognised yet."""
        if record.skipped:
            self.dropped.add(record.pointer, record.skipped)
            return
        if record.source != self._source:
            yield from self._end_of_file()
            self._source = record.source
            for name, gathered in self._gathered.items():
                yield from self._given(name, gathered.ready(self._source))
        if record.error is not None:
            if not self._text.holds(record):
                yield record
            return
        record = self._with_finite_numbers(_decoded_text(record))
        format = self._detected(record.document)
        wrapped = self._wrapped(record, format)
        if format is None and wrapped is None:
            format = self._found_within(record.document)
        if format is None and wrapped is None:
            self._unknown.add(record)
            return
        format = format or self._of_source
        assert format is not None
        self._text.is_over = True
        yield from self._text.taken()
        for waiting in self._unknown.taken():
            yield from self._split(waiting, format)
        for part in [record] if wrapped is None else wrapped:
            yield from self._split(part, format)

    def rest(self) -> Iterator[Record]:
        """After the last record: what was gathered, and what was not recognised."""
        yield from self._end_of_file()
        for name, gathered in self._gathered.items():
            yield from self._given(name, gathered.records())

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

    def format_name(self, record: Record) -> str:
        """Of the format that a record is read by."""
        return self._format_of(record).name

    def _detected(self, document: Any) -> formats.Format | None:
        """The format of the file that is read now: asked for, or found by this document or an earlier one."""
        if self.format is not None and not self.detected:
            return self.format
        if self._of_source is None and (found := formats.find(document)) is not None:
            self._of_source = found
            if self.format is None:
                self.format, self.detected = found, True
        return self._of_source

    def _found_within(self, document: Any) -> formats.Format | None:
        """A format of last resort, which is that of the file from then on."""
        found = formats.find_within(document)
        if found is not None:
            self._of_source = found
            if self.format is None:
                self.format, self.detected = found, True
        return found

    def _wrapped(self, record: Record, format: formats.Format | None) -> list[Record] | None:
        """The records that a record holds under keys, where no format is known yet, or the file has such records; None
        where it is a record itself."""
        if format is not None and not (self._of_wrapped and format is self._of_source):
            return None
        if format is not None and format.sniff(record.document):
            return None
        found = wrapped_records(record.document, formats.name_of_whole, formats.name_of_log)
        if found is None or (format is not None and found.format != format.name):
            return None
        if format is None and self._unknown.count > _MOST_HEADERS:
            return (
                None  # a file of records that none of them is may not become one by a few that look like it
            )
        if format is None:
            self._of_wrapped = True
            self._of_source = formats.FORMATS[found.format]
            if self.format is None:
                self.format, self.detected = self._of_source, True
        for path in found.left:
            self.dropped.add(path, field_coverage.OF_NO_TRAJECTORY)
        return [
            replace(
                record,
                raw=encoded(part.marked),
                document=part.marked,
                pointer=record.pointer + part.pointer,
            )
            for part in found.records
        ]

    def _end_of_file(self) -> Iterator[Record]:
        yield from self._text.taken()
        error = self._unknown.error()
        if error is not None:
            yield error
        self._text = TextLines()
        self._unknown, self._of_source, self._of_wrapped = UnknownFile(), None, False

    def _split(self, record: Record, format: formats.Format) -> Iterator[Record]:
        record = replace(record, format=format.name)
        try:
            if format.gather is not None:
                if format.name not in self._gathered:
                    self._gathered[format.name] = format.gather(settings.MAX_RECORD_BYTES)
                self._gathered[format.name].add(record)
                yield from self._given(format.name, self._gathered[format.name].ready(record.source))
            else:
                yield from self._divided(record, format)
        except InvalidRecord as error:
            yield Record(record.line, record.raw, pointer=record.pointer, error=error)

    def _given(self, name: str, records: Iterable[Record]) -> Iterator[Record]:
        """Of a gatherer. name: of its format."""
        for record in records:
            if record.skipped:
                self.dropped.add(record.pointer, record.skipped)
            else:
                yield from self._split_gathered(replace(record, format=name))

    def _split_gathered(self, record: Record) -> Iterator[Record]:
        try:
            yield from [record] if record.error else self._divided(record, self._format_of(record))
        except InvalidRecord as error:
            yield Record(record.line, record.raw, pointer=record.pointer, error=error)

    def _divided(self, record: Record, format: formats.Format) -> Iterator[Record]:
        if format.split is None:
            yield record
            return
        parts = list(format.split(record.document))
        if len(parts) == 1 and parts[0][1] is record.document:
            yield record  # with its own bytes
            return
        for path in field_coverage.uncovered(record.document, [document for _, document in parts]):
            self.dropped.add(path, field_coverage.OF_NO_TRAJECTORY)
        for pointer, document in parts:
            yield replace(record, raw=encoded(document), document=document, pointer=record.pointer + pointer)

    def _with_finite_numbers(self, record: Record) -> Record:
        """NaN and infinities are no JSON, and whole numbers of over 300 digits fit in no field: null stands for them,
        and they are counted."""
        if record.error is not None or record.is_finite or _is_finite(record.document):
            return record
        return replace(record, document=self._finite(record.document, ""), is_edited=True)

    def _finite(self, value: Any, path: str) -> Any:
        if isinstance(value, int | float):
            if is_finite(value):
                return value
            self.dropped.add(path, field_coverage.NOT_FINITE)
            return None
        if isinstance(value, dict):
            return {key: self._finite(item, f"{path}/{escape(str(key))}") for key, item in value.items()}
        if isinstance(value, list):
            return [self._finite(item, f"{path}/*") for item in value]
        return value

    def _format_of(self, record: Record) -> formats.Format:
        if self.format is not None and not self.detected:
            return self.format
        if record.format:
            return formats.FORMATS[record.format]
        if self.format is None:
            self.format, self.detected = formats.detect(record.document), True
        return self.format


def _decoded_text(record: Record) -> Record:
    """A document that was encoded twice, so that it is a text of JSON: what the text holds."""
    text = record.document
    if not isinstance(text, str) or not text.lstrip().startswith(("{", "[")):
        return record
    try:
        return replace(record, document=parse_json(text), is_edited=True)
    except InvalidRecord:
        return record


def _source_path(format: formats.Format, path: str) -> str:
    """Of a field of one of the documents that a file was split into, where it stands in the file."""
    top = f"/{path.split('/')[1]}" if path else ""
    return format.places.get(top, top) + path[len(top) :]


def read_import_records(
    stream: BinaryIO | Path, *, first_line: int = 1, bounds: InputBounds | None = None
) -> Iterator[Record]:
    return read_records(stream, limit=settings.MAX_RECORD_BYTES, first_line=first_line, bounds=bounds)


def _is_finite(value: Any) -> bool:
    if isinstance(value, int | float):
        return is_finite(value)
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    return all(map(_is_finite, value)) if isinstance(value, list) else True
