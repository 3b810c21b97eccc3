"""Cutting a stream of JSON into records, with constant memory and every record's own bytes.

Read are JSON lines, JSON arrays of records or JSON documents, one or several one after another, tables (Parquet, Arrow,
CSV), sessions written as text (`text_kinds`), and zip and tar archives and folders of such; gzip, zstd, bzip2 and xz
are unpacked, UTF-16 and UTF-32 become UTF-8. What cannot be cut further (a broken array has no next record to be found)
ends the stream with its error.
"""

import codecs
import gzip
import io
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec
import zstandard

from apps.core.storage.unpacking import MOST_BLANK, InputBounds, unpacked
from apps.trajectories.formats.archive import PICKLED, is_archive, read_archive, read_folder
from apps.trajectories.formats.entries import seekable_original
from apps.trajectories.formats.record import NotJson, Record, too_large
from apps.trajectories.formats.tables import csv_delimiter, is_table, read_csv, read_table
from apps.trajectories.formats.text import NO_FURTHER, JsonTextReader, MalformedJson
from apps.trajectories.formats.text_kind import read_text
from apps.trajectories.formats.text_kinds import text_kind
from workers.errors import InvalidRecord
from workers.schema import RECORD_LIMITS, TooMuchJson, check_json_shape
from workers.schema.patterns import TextPattern

_HEAD = 2**20
_decode = msgspec.json.Decoder().decode
_PICKLES = tuple(bytes([0x80, protocol]) for protocol in range(2, 6))
_ENCODINGS = (  # by their byte order marks, the longer ones first; without one, by the zeros around the first character
    (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
    (b"{\0", "utf-16-le"), (b"[\0", "utf-16-le"), (b"\0{", "utf-16-be"), (b"\0[", "utf-16-be"),
)  # fmt: skip
_CONVERT = "is not read. Convert it to JSON lines, one trajectory a line"
_NO_JSON = {
    b"\x89HDF": f"the file is HDF5, which {_CONVERT}; of Minari data sets, an episode a line.",
    b"SQLite format 3": f"the file is an SQLite database, which {_CONVERT}.",
    b"7z\xbc\xaf": "the file is a 7z archive, which is not read. Send a zip archive, or the files in it.",
    b"Rar!": "the file is a RAR archive, which is not read. Send a zip archive, or the files in it.",
    b"\x04\x22\x4d\x18": "the file is packed by lz4, which is not read. Use gzip, zstd, bzip2 or xz.",
    b"%PDF": f"the file is a PDF, which {_CONVERT}.",
}
_DAMAGED = (gzip.BadGzipFile, zlib.error, zstandard.ZstdError, EOFError)
# Every digit becomes a zero, all else a space: whether a number is too large for a double is a search for zeros.
_DIGITS = bytes(48 if 48 <= byte < 58 else 32 for byte in range(256))
_LONG_NUMBER = b"0" * 309
_COMMENTS, _COMMENT = TextPattern(r"(?:\s*(?:#|//)[^\n]*\n)+\s*[\[{]"), (b"#", b"//")
_FIRST_KEY = TextPattern(r'\[\s*\{\s*"role"\s*:')


def read_records(
    stream: BinaryIO | Path, *, limit: int, first_line: int = 1, bounds: InputBounds | None = None
) -> Iterator[Record]:
    """stream: a file, or the path of a folder. limit: bytes one record may have. Bad input is told by the record;
    raises DomainError where all of it together is over its bounds."""
    return _records(stream, limit, first_line, InputBounds() if bounds is None else bounds)


def _records(stream: BinaryIO | Path, limit: int, first_line: int, bounds: InputBounds) -> Iterator[Record]:
    line = first_line
    try:
        for record in _cut(stream, limit, first_line, bounds):
            line = record.line
            yield record
    except _DAMAGED as error:
        yield Record(line, error=InvalidRecord(f"the compressed file is damaged after this record: {error}."))
    except _DamagedText as error:
        yield Record(line, error=error)


def _cut(stream: BinaryIO | Path, limit: int, first_line: int, bounds: InputBounds) -> Iterator[Record]:
    def entry(file: BinaryIO) -> Iterator[Record]:
        return _cut_entry(file, limit, bounds)

    if isinstance(stream, Path):
        return read_folder(stream, limit, bounds, entry)
    head, whole = _look(unpacked(stream, bounds))
    if is_archive(head):
        return read_archive(whole, limit, bounds, entry, seekable_original(stream, head, bounds))
    if is_table(head):
        return read_table(head, whole, limit, bounds, seekable_original(stream, head, bounds))
    return _cut_file(head, whole, limit, first_line, bounds)


def _cut_entry(entry: BinaryIO, limit: int, bounds: InputBounds) -> Iterator[Record]:
    line = 1
    try:
        head, whole = _look(unpacked(entry, bounds, is_sent=False))
        if is_archive(head):
            yield Record(1, error=InvalidRecord("an archive in an archive is not read; send it alone."))
            return
        for record in _cut_file(head, whole, limit, 1, bounds):
            line = record.line
            yield record
    except _DAMAGED as error:
        yield Record(line, error=InvalidRecord(f"the file is damaged after this record: {error}."))
    except _DamagedText as error:
        yield Record(line, error=error)


def _cut_file(
    head: bytes, whole: BinaryIO, limit: int, first_line: int, bounds: InputBounds
) -> Iterator[Record]:
    if head.startswith(_PICKLES):
        return iter([Record(first_line, error=InvalidRecord(PICKLED))])
    if is_table(head):
        return read_table(head, whole, limit, bounds)
    if (encoding := next((name for mark, name in _ENCODINGS if head.startswith(mark)), None)) is not None:
        head, whole = _look(cast(BinaryIO, io.BufferedReader(_AsUtf8(whole, encoding), _HEAD)))
    text = head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    if (kind := text_kind(text)) is not None:
        return read_text(kind, whole, limit, first_line)
    if (refusal := _refusal(text, head)) is not None:
        return iter([Record(first_line, error=InvalidRecord(refusal))])
    if (delimiter := csv_delimiter(text)) is not None:
        return read_csv(whole, delimiter, limit)
    if text.startswith("[") and not _is_messages(text):
        return _arrays(JsonTextReader(whole, limit))
    if _COMMENTS.match(text):
        return _lines(whole, limit, first_line, has_comments=True)
    if _is_lines(text) and not _has_several(text):
        return _lines(whole, limit, first_line)
    return _documents(JsonTextReader(whole, limit))


_HTML, _HTML_LOOKED = ("<!doctype html", "<html"), 4096
_PAGE = (
    "the file is an HTML page, which is not read, but for WebArena's render_*.html. Send the run as JSON, such as "
    '{"messages": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}]}.'
)


def _refusal(text: str, head: bytes) -> str | None:
    """What a file is that holds no JSON, and what to do about it."""
    if text[:_HTML_LOOKED].lower().startswith(_HTML):
        return _PAGE
    return next((message for magic, message in _NO_JSON.items() if head.startswith(magic)), None)


def _lines(stream: BinaryIO, limit: int, number: int, *, has_comments: bool = False) -> Iterator[Record]:
    blank = 0
    while raw := stream.readline(limit + 1):
        if len(raw) > limit:
            while raw and not raw.endswith(b"\n"):
                raw = stream.readline(_HEAD)
            yield Record(number, error=too_large(limit))
        elif has_comments and raw.lstrip(b"\xef\xbb\xbf \t").startswith(_COMMENT):
            yield Record(number, skipped="a comment between the records")
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
        return Record(number, raw, _decode(raw), is_finite=_LONG_NUMBER not in raw.translate(_DIGITS))
    except TooMuchJson as error:
        return Record(number, raw, error=error)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass  # NaN, lone surrogates, or no JSON at all: the other decoder takes what it can and says what is wrong
    try:
        return Record(number, raw, json.loads(raw.decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 at byte {error.start} of the line; save the file as UTF-8."
    except json.JSONDecodeError as error:
        return Record(number, raw, error=NotJson(f"not valid JSON: {error.msg} at column {error.colno}."))
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


def _has_several(text: str) -> bool:
    """Whether several documents stand on one line, or on lines that end as on old Macs."""
    if "\n" in text.rstrip():
        return False
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return False
    return text[end : end + 100].lstrip()[:1] in ("{", "[")


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


class _DamagedText(InvalidRecord):
    """Bytes that are none of the encoding which the file begins in."""


class _AsUtf8(io.RawIOBase):
    """Text in another encoding as UTF-8. Raises _DamagedText."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        self._stream, self._encoding = stream, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._waiting = b""
        self._before = 0  # bytes that are decoded

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._waiting:
            raw = self._stream.read(_HEAD)
            held = len(self._decoder.getstate()[0])
            try:
                self._waiting = self._decoder.decode(raw, final=not raw).encode()
            except UnicodeError as error:
                start = getattr(error, "start", 0)
                raise _DamagedText(
                    f"not {self._encoding.upper()} at byte {self._before - held + start:,} of the file; save it as "
                    "UTF-8. What comes after this record cannot be read."
                ) from None
            self._before += len(raw)
            if not raw:
                break
        piece = self._waiting[: len(buffer)]
        self._waiting = self._waiting[len(piece) :]
        buffer[: len(piece)] = piece
        return len(piece)
