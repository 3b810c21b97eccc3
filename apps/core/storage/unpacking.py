"""What one input may become: bytes, entries, blank lines and time, counted while it is read.

Everything that unpacks what someone sent does it through an `InputBounds`: it counts what came and what that became,
stops where either is too much, where it takes too long, and where the client that sent it has left. What it raises
undoes the transaction it is in; nothing of the input is kept.
"""

import bz2
import gzip
import io
import lzma
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any, BinaryIO, cast

import zstandard
from django.conf import settings

from apps.core.errors import DomainError
from apps.core.http.client_disconnect import client_left
from apps.core.storage.temporary_files import TemporaryFile

MOST_TIMES = 300  # bytes that one byte may become, beyond the first so many:
ALWAYS = 128 * 2**20
MOST_ENTRIES = 100_000  # of an archive
MOST_BLANK = 100_000  # lines, or characters between two records, with nothing in them
_WINDOW = 2**27  # bytes that a zstd frame may ask to be kept in memory, as `zstd --long` makes them
_XZ_MEMORY = 2**27  # bytes that an xz stream may ask for; `xz -9` needs half of it
_PIECE = 2**20


class TooMuch(DomainError):
    def __init__(self, message: str) -> None:
        super().__init__(message, status=413)


class ClientGone(DomainError):
    def __init__(self) -> None:
        super().__init__("The client disconnected; nothing was kept.", status=408)


@dataclass(slots=True)
class InputBounds:
    """owner: whose temporary files are counted; None: the operator's own. seconds: None for as long as it takes."""

    owner: int | None = None
    most_bytes: int = field(default_factory=lambda: settings.MAX_UNPACKED_BYTES)
    seconds: float | None = None
    gone: Callable[[], bool] = field(default_factory=client_left)
    packed: int = 0
    unpacked: int = 0
    _began: float = field(default_factory=time.monotonic)

    def came(self, count: int) -> None:
        """So many bytes were read of what was sent."""
        self.packed += count
        self.check()

    def became(self, count: int) -> None:
        """So many bytes were unpacked."""
        self.unpacked += count
        if self.unpacked > self.most_bytes:
            raise TooMuch(
                f"It unpacks to more than {self.most_bytes // 2**20} MB; send it in parts, or raise "
                "TOUCHSTONE_MAX_UNPACKED_MB."
            )
        if self.unpacked > max(ALWAYS, MOST_TIMES * self.packed):
            raise TooMuch(
                f"It unpacks to more than {MOST_TIMES} times its size, beyond {ALWAYS // 2**20} MB; "
                "send it in parts, or less compressed."
            )
        self.check()

    def check(self) -> None:
        """Raises ClientGone, and TooMuch where it has taken too long."""
        if self.gone():
            raise ClientGone
        if self.seconds is not None and time.monotonic() - self._began > self.seconds:
            raise TooMuch(
                f"Reading it took more than {self.seconds:.0f} seconds, so nothing was kept; send it in parts, or "
                "raise TOUCHSTONE_MAX_READ_SECONDS."
            )

    def temporary(self, in_memory: int) -> TemporaryFile:
        return TemporaryFile(self.owner, in_memory)


def bounds_of_request(owner: int | None = None) -> InputBounds:
    """For what a request waits for; what a worker does may take longer."""
    return InputBounds(owner=owner, seconds=settings.MAX_READ_SECONDS)


def unpacked(stream: IO[bytes], bounds: InputBounds, *, is_sent: bool = True) -> BinaryIO:
    """`stream` as it is, or out of gzip, zstd, bzip2 or xz, which it begins with. Reading it raises what `bounds`
    raises, and gzip.BadGzipFile, zlib.error, ZstdError or EOFError for what is damaged. is_sent: whether the bytes of
    `stream` are those that were sent; those of a file in an archive are not."""
    magic = _exactly(stream, 4)
    whole = io.BufferedReader(cast(Any, _Came(magic, stream, bounds if is_sent else None)), _PIECE)
    if magic[:2] == b"\x1f\x8b":
        inner: Any = gzip.GzipFile(fileobj=whole)
    elif magic == b"\x28\xb5\x2f\xfd":
        decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
        inner = decompressor.stream_reader(cast(Any, whole), read_across_frames=True)
    elif magic[:3] == b"BZh":
        inner = _IncrementalUnpacker(whole, bz2.BZ2Decompressor)
    elif magic == b"\xfd7zX":
        inner = _IncrementalUnpacker(whole, lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY))
    else:
        return cast(BinaryIO, whole)
    return bounded(inner, 0, bounds)


def bounds_of_operator() -> InputBounds:
    """For files of this machine that its operator names: of them, only how often their size they become is limited."""
    return InputBounds(most_bytes=sys.maxsize)


def as_sent(stream: IO[bytes], bounds: InputBounds) -> BinaryIO:
    """`stream` as it is. Reading it raises what `bounds` raises."""
    return cast(BinaryIO, io.BufferedReader(cast(Any, _Came(b"", stream, bounds)), _PIECE))


def bounded(unpacker: IO[bytes], packed: int, bounds: InputBounds) -> BinaryIO:
    """What `unpacker` gives of so many bytes. Reading it raises what `bounds` raises."""
    bounds.came(packed)
    return cast(BinaryIO, io.BufferedReader(_Became(unpacker, bounds), _PIECE))


def _exactly(stream: IO[bytes], size: int) -> bytes:
    """Fewer only where there are no more: a socket gives what it has."""
    found = b""
    while len(found) < size and (piece := stream.read(size - len(found))):
        found += piece
    return found


class _Came(io.RawIOBase):
    """What was sent, with what was already read of it put back in front. bounds: None where it is not counted."""

    def __init__(self, head: bytes, stream: IO[bytes], bounds: InputBounds | None) -> None:
        self._head, self._stream, self._bounds = head, stream, bounds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._head[: len(buffer)] if self._head else self._stream.read(len(buffer))
        self._head = self._head[len(piece) :] if self._head else b""
        if self._bounds is not None:
            self._bounds.came(len(piece))
        buffer[: len(piece)] = piece
        return len(piece)


class _Became(io.RawIOBase):
    def __init__(self, stream: Any, bounds: InputBounds) -> None:
        self._stream, self._bounds = stream, bounds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._stream.read(len(buffer))
        self._bounds.became(len(piece))
        buffer[: len(piece)] = piece
        return len(piece)


class _IncrementalUnpacker(io.RawIOBase):
    """One stream after another out of a decompressor of bz2 or lzma. make: a new one."""

    def __init__(self, packed: IO[bytes], make: Callable[[], Any]) -> None:
        self._packed, self._make, self._decompressor = packed, make, make()

    def read(self, size: int = -1) -> bytes:
        data = b""
        while True:
            if self._decompressor.eof:
                data = (self._decompressor.unused_data or self._packed.read(_PIECE)).lstrip(b"\0")
                if not data:
                    return b""
                self._decompressor = self._make()
            elif self._decompressor.needs_input:
                data = self._packed.read(_PIECE)
                if not data:
                    raise EOFError("it ends too early")
            try:
                found: bytes = self._decompressor.decompress(data, size if size > 0 else _PIECE)
            except (OSError, lzma.LZMAError) as error:
                raise EOFError(str(error)) from None
            if found:
                return found
            data = b""
