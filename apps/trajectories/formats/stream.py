"""Cutting a stream of JSON into records, with constant memory and every record's own bytes.

Read are JSON lines, JSON arrays of records or JSON documents, one or several one after another, and zip archives of
such; gzip and zstd are unpacked. What cannot be cut further (a broken array has no next record to be found) ends the
stream with its error.
"""

import gzip
import io
import json
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

import msgspec
import zstandard

from apps.core.storage.unpacking import MOST_BLANK, InputBounds, unpacked
from apps.trajectories.formats.archive import MAGIC, PICKLED, read_archive
from apps.trajectories.formats.record import Record, too_large
from apps.trajectories.formats.text import NO_FURTHER, JsonTextReader, MalformedJson
from workers.errors import InvalidRecord
from workers.schema import RECORD_LIMITS, TooMuchJson, check_json_shape
from workers.schema.patterns import TextPattern

_HEAD = 2**20
_decode = msgspec.json.Decoder().decode
_PICKLES = tuple(bytes([0x80, protocol]) for protocol in range(2, 6))
_FIRST_KEY = TextPattern(r'\[\s*\{\s*"role"\s*:')


def read_records(
    stream: BinaryIO, *, limit: int, first_line: int = 1, bounds: InputBounds | None = None
) -> Iterator[Record]:
    """limit: bytes one record may have. Bad input is told by the record; raises DomainError where all of it together
    is over its bounds."""
    return _records(stream, limit, first_line, InputBounds() if bounds is None else bounds)


def _records(stream: BinaryIO, limit: int, first_line: int, bounds: InputBounds) -> Iterator[Record]:
    line = first_line
    try:
        for record in _cut(stream, limit, first_line, bounds):
            line = record.line
            yield record
    except (gzip.BadGzipFile, zlib.error, zstandard.ZstdError, EOFError) as error:
        yield Record(line, error=InvalidRecord(f"the compressed file is damaged after this record: {error}."))


def _cut(stream: BinaryIO, limit: int, first_line: int, bounds: InputBounds) -> Iterator[Record]:
    head, whole = _look(unpacked(stream, bounds))
    if head.startswith(MAGIC):
        return read_archive(whole, limit, bounds, lambda entry: _cut_text(*_look(entry), limit, 1))
    return _cut_text(head, whole, limit, first_line)


def _cut_text(head: bytes, whole: BinaryIO, limit: int, first_line: int) -> Iterator[Record]:
    if head.startswith(_PICKLES):
        return iter([Record(first_line, error=InvalidRecord(PICKLED))])
    text = head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    if text.startswith("[") and not _is_messages(text):
        return _arrays(JsonTextReader(whole, limit))
    if _is_lines(text):
        return _lines(whole, limit, first_line)
    return _documents(JsonTextReader(whole, limit))


def _lines(stream: BinaryIO, limit: int, number: int) -> Iterator[Record]:
    blank = 0
    while raw := stream.readline(limit + 1):
        if len(raw) > limit:
            while raw and not raw.endswith(b"\n"):
                raw = stream.readline(_HEAD)
            yield Record(number, error=too_large(limit))
        elif raw.strip(b"\xef\xbb\xbf \t\r\n"):
            yield _line(raw, number)
        else:
            blank += 1
            if blank > MOST_BLANK:
                yield Record(
                    number, error=InvalidRecord(f"there are over {MOST_BLANK:,} empty lines; {NO_FURTHER}")
                )
                return
        number += 1


def _line(raw: bytes, number: int) -> Record:
    try:
        check_json_shape(raw, RECORD_LIMITS)
        return Record(number, raw, _decode(raw))
    except TooMuchJson as error:
        return Record(number, raw, error=error)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass  # NaN, lone surrogates, or no JSON at all: the other decoder takes what it can and says what is wrong
    try:
        return Record(number, raw, json.loads(raw.decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 at byte {error.start} of the line; save the file as UTF-8."
    except json.JSONDecodeError as error:
        problem = f"not valid JSON: {error.msg} at column {error.colno}."
    except ValueError as error:  # a whole number of thousands of digits
        problem = f"not readable as JSON: {error}."
    except RecursionError:
        problem = "nested too deeply to be read."
    return Record(number, raw, error=InvalidRecord(problem))


def _arrays(text: JsonTextReader) -> Iterator[Record]:
    """An array, and those that stand after it."""
    index, line = 0, 1
    try:
        while text.peek():
            index = 0
            text.take("[")
            after = "]" if text.peek() == "]" else ","
            if after == "]":
                text.take("]")
            while after == ",":
                text.peek()
                line = text.line
                raw, document = text.value()
                yield Record(line, raw, document, pointer=f"/{index}")
                line, after = text.line, text.take(",]")
                index += 1
    except MalformedJson as error:
        yield Record(error.line or line, pointer=f"/{index}", error=InvalidRecord(f"{error} {_REST}"))


_REST = "The rest of the array cannot be read."


def _documents(text: JsonTextReader) -> Iterator[Record]:
    line = 1
    try:
        while text.peek():
            line = text.line
            raw, document = text.value()
            yield Record(line, raw, document)
    except MalformedJson as error:
        yield Record(error.line or line, error=InvalidRecord(str(error)))


def _is_lines(text: str) -> bool:
    """Whether the first line is a document of its own, or was meant to be."""
    line, newline, _ = text.partition("\n")
    return not newline or line.rstrip().endswith(("}", "]")) or not line.startswith(("{", "["))


def _is_messages(text: str) -> bool:
    """Whether an array's first element is a chat message, so that the array is one record."""
    try:
        if _FIRST_KEY.match(text):
            return True
        first, _ = json.JSONDecoder().raw_decode(text, len(text) - len(text[1:].lstrip(" \t\r\n")))
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and "role" in first


def _look(stream: BinaryIO) -> tuple[bytes, BinaryIO]:
    """The beginning of a stream, and the whole of it."""
    head = b""
    while len(head) < _HEAD and (piece := stream.read(_HEAD - len(head))):
        head += piece
    return head, cast(BinaryIO, io.BufferedReader(_Rejoined(head, stream), _HEAD))


class _Rejoined(io.RawIOBase):
    """A stream with what was already read of it put back in front."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head, self._stream = head, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._head[: len(buffer)] if self._head else self._stream.read(len(buffer))
        self._head = self._head[len(piece) :] if self._head else b""
        buffer[: len(piece)] = piece
        return len(piece)
