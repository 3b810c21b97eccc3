"""Bodies of imports: a file, a folder or an open file streamed as it is, or records in batches of JSON lines."""

import json
import os
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from touchstone_client.transport import Body, Content
from touchstone_client.values import plain

ImportSource = str | os.PathLike[str] | BinaryIO | Iterable[Mapping[str, Any]]
BATCH = 500  # records of a request
_BATCH_BYTES = 8 * 2**20
_PART = 2**18
_TAR_BLOCK = 512
_TAR_END = 2 * _TAR_BLOCK


def open_upload(source: str | os.PathLike[str] | BinaryIO) -> Body:
    """Raises OSError where the file is not there, and ValueError for a folder without files."""
    if not isinstance(source, str | os.PathLike):
        return _opened_file(source)
    path = Path(source)
    if path.is_dir():
        return _folder(path)
    size = path.stat().st_size
    return Body(lambda: _file_parts(path, size), size)


def reporting(body: Body, show: Callable[[int, int | None], None]) -> Body:
    """The body; show is called with the bytes that were sent, and all of them."""

    def parts() -> Iterator[bytes]:
        sent = 0
        for part in body.content():
            yield part
            sent += len(part)
            show(sent, body.size)

    return replace(body, content=parts)


def is_binary_file(source: Any) -> bool:
    return callable(getattr(source, "read", None))


def record_batches(records: Iterable[Mapping[str, Any]], size: int) -> Iterator[tuple[int, Body]]:
    """Number of records, and their JSON lines. Values of numpy become those of JSON; raises ValueError for NaN."""
    if size < 1:
        raise ValueError(f"batch is {size}; it must be at least 1")
    lines: list[bytes] = []
    length = 0
    for record in records:
        line = json.dumps(plain(record), allow_nan=False).encode() + b"\n"
        if lines and (len(lines) == size or length + len(line) > _BATCH_BYTES):
            yield len(lines), _lines_body(lines)
            lines, length = [], 0
        lines.append(line)
        length += len(line)
    if lines:
        yield len(lines), _lines_body(lines)


def _lines_body(lines: list[bytes]) -> Body:
    body = b"".join(lines)
    return Body(lambda: iter((body,)), len(body), "application/x-ndjson")


def _file_parts(path: Path, size: int) -> Iterator[bytes]:
    """The first `size` bytes: a file may grow while it is sent."""
    with path.open("rb") as file:
        yield from _parts(file, size, str(path))


def _parts(file: BinaryIO, size: int, name: str) -> Iterator[bytes]:
    left = size
    while left:
        part = file.read(min(_PART, left))
        if not part:
            raise ValueError(f"{name} became shorter while it was sent; import it again.")
        left -= len(part)
        yield part


def _opened_file(file: BinaryIO) -> Body:
    """From where it stands; a stream that cannot go back is sent once."""
    if not file.seekable():
        return Body(_once(file), None)
    begin = file.tell()
    size = file.seek(0, os.SEEK_END) - begin

    def parts() -> Iterator[bytes]:
        file.seek(begin)
        yield from _parts(file, size, "The file")

    return Body(parts, size)


def _once(stream: BinaryIO) -> Content:
    began = False

    def parts() -> Iterator[bytes]:
        nonlocal began
        if began:
            raise ValueError(
                "The first attempt failed, and the stream cannot be read again; import it from a file."
            )
        began = True
        while part := stream.read(_PART):
            yield part

    return parts


def _folder(folder: Path) -> Body:
    """All files in it as one archive, in the order of their names; links are not followed."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    if not files:
        raise ValueError(f"The folder {folder} has no files.")
    entries = [(path, _tar_header(folder, path), path.stat().st_size) for path in files]
    length = sum(len(header) + size + -size % _TAR_BLOCK for _, header, size in entries)
    return Body(lambda: _tar_parts(entries), length + _TAR_END, "application/x-tar")


def _tar_header(folder: Path, path: Path) -> bytes:
    entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
    entry.size = path.stat().st_size
    return entry.tobuf(tarfile.PAX_FORMAT)


def _tar_parts(entries: Sequence[tuple[Path, bytes, int]]) -> Iterator[bytes]:
    for path, header, size in entries:
        yield header
        yield from _file_parts(path, size)
        yield bytes(-size % _TAR_BLOCK)
    yield bytes(_TAR_END)
