"""The files of a zip archive, of a tar archive or of a folder, as one thing that names them and opens them.

What an entry claims of its size and kind is not believed: whoever reads it counts what comes. Nothing is written to a
folder, links are not followed, and names that point outside are refused.
"""

import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, Protocol

import zstandard

from apps.core.storage.unpacking import MOST_ENTRIES, InputBounds, as_sent, bounded
from workers.errors import InvalidRecord

_IN_MEMORY = 64 * 2**20
_COMPARED = 512  # bytes
# Of the end's record of a zip archive: entries, bytes of their list; bytes of a line of it.
_ENTRIES, _DIRECTORY, _LINE = 4, 5, 600
_ZSTD = 93
_LOCAL = struct.Struct("<26xHH")  # of an entry's own header: the lengths of its name and of what follows that
DAMAGED = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    zstandard.ZstdError,
    EOFError,
    struct.error,
    NotImplementedError,
)


class Entries(Protocol):
    """names: of the files, in their order. not_files: names of what is neither a file nor a folder, such as links.
    is_packed: whether what is opened comes out of the bytes that were sent; else it is them."""

    names: list[str]
    not_files: list[str]
    is_packed: bool

    def open(self, name: str) -> IO[bytes]:
        """Raises InvalidRecord for an entry that is not read, and one of DAMAGED."""


class ZipEntries:
    """Entries packed by zstd, as Inspect does, are read too. Raises one of DAMAGED."""

    is_packed = True

    def __init__(self, file: Any) -> None:
        _check_directory(file)
        self._archive = zipfile.ZipFile(file)
        found = [entry for entry in self._archive.infolist() if not entry.is_dir()]
        self.names = [entry.filename for entry in found]
        self.not_files: list[str] = []

    def open(self, name: str) -> IO[bytes]:
        _check_inside(name)
        entry = self._archive.getinfo(name)
        if entry.flag_bits & 1:
            raise InvalidRecord("the entry is encrypted; send it without a password.")
        try:
            return self._open(entry)
        except (NotImplementedError, RuntimeError):
            raise InvalidRecord(
                "the entry is packed in a way that is not read; use deflate or zstd."
            ) from None

    def _open(self, entry: zipfile.ZipInfo) -> IO[bytes]:
        if entry.compress_type != _ZSTD:
            return self._archive.open(entry)
        file = self._archive.fp
        assert file is not None
        file.seek(entry.header_offset)
        name, extra = _LOCAL.unpack(file.read(_LOCAL.size))
        file.seek(name + extra, 1)
        packed = file.read(entry.compress_size)
        return zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)


def _check_directory(file: Any) -> None:
    """Before `zipfile` reads all of it into objects, each a hundred times as large as its line."""
    end: Any = zipfile._EndRecData(file)  # type: ignore[attr-defined]
    if end is not None and (end[_ENTRIES] > MOST_ENTRIES or end[_DIRECTORY] > MOST_ENTRIES * _LINE):
        raise zipfile.BadZipFile(
            f"it has {end[_ENTRIES]} entries; at most {MOST_ENTRIES} are read. Send it in parts"
        )


class TarEntries:
    """Raises one of DAMAGED."""

    is_packed = True

    def __init__(self, file: Any) -> None:
        self._archive = tarfile.open(fileobj=file, mode="r:")  # noqa: SIM115 the file is closed by its owner
        self._members: dict[str, tarfile.TarInfo] = {}
        self.not_files: list[str] = []
        for count, member in enumerate(self._archive, 1):
            if count > MOST_ENTRIES:
                raise tarfile.TarError(f"it has more than {MOST_ENTRIES} entries. Send it in parts")
            if member.isreg():
                self._members[member.name.removeprefix("./")] = (
                    member  # the last of a name counts, as for tar
                )
            elif not member.isdir():
                self.not_files.append(member.name)
        self.names = list(self._members)

    def open(self, name: str) -> IO[bytes]:
        _check_inside(name)
        file = self._archive.extractfile(self._members[name])
        if file is None:
            raise InvalidRecord("the entry is no file.")
        return file


def _check_inside(name: str) -> None:
    parts = name.replace("\\", "/").split("/")
    if ".." in parts or name.startswith(("/", "\\")) or ":" in parts[0]:
        raise InvalidRecord(f"the archive names {name!r}, which is outside of it.")


class FolderEntries:
    """A folder of this machine, by the command line only. Links are named and not followed."""

    is_packed = False

    def __init__(self, folder: Path) -> None:
        self._paths: dict[str, Path] = {}
        self.not_files: list[str] = []
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            if path.is_file() and not path.is_symlink():
                self._paths[name] = path
            elif not path.is_dir() or path.is_symlink():
                self.not_files.append(name)
        self.names = list(self._paths)

    def open(self, name: str) -> IO[bytes]:
        try:
            return self._paths[name].open("rb")
        except OSError as error:
            raise InvalidRecord(f"the file cannot be read: {error.strerror}.") from None


@contextmanager
def open_bounded(entries: Entries, name: str, bounds: InputBounds) -> Iterator[BinaryIO]:
    """An entry whose bytes are counted as they come. Raises as `Entries.open`."""
    with entries.open(name) as file:
        yield bounded(file, 0, bounds) if entries.is_packed else as_sent(file, bounds)


def seekable_original(stream: BinaryIO, head: bytes, bounds: InputBounds) -> BinaryIO | None:
    """The file itself, from its beginning, where it can be read from any place and begins with `head`, so that it is
    not packed; else None. Its bytes count as sent."""
    if not (hasattr(stream, "seekable") and stream.seekable()):
        return None
    place = stream.tell()
    stream.seek(0)
    if stream.read(_COMPARED) != head[:_COMPARED]:
        stream.seek(place)
        return None
    bounds.came(stream.seek(0, io.SEEK_END))
    stream.seek(0)
    return stream


def temporary_copy(stream: BinaryIO, bounds: InputBounds) -> Any:
    """The rest of a stream as a file that can be read from any place."""
    kept = bounds.temporary(_IN_MEMORY)
    while piece := stream.read(2**20):
        kept.write(piece)
    kept.seek(0)
    return kept
