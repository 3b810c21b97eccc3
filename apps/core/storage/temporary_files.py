"""Temporary files of a project, counted and limited over all processes of a machine.

Each lies in the project's folder below the home, locked by the process that has it. One that no one has locked belongs
to a process that died, and is removed by the next process that counts.
"""

import fcntl
import io
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.core.errors import TooManyRequests
from apps.core.storage.storage_names import home_path

_RETRY_AFTER = 30  # seconds
_STEP = 4 * 2**20  # bytes after which the project's files are counted again


class TooMuchTemporary(TooManyRequests):
    def __init__(self, limit: int) -> None:
        super().__init__(
            f"What this project is unpacking now takes more than {limit // 2**20} MB of temporary files; send this "
            "again when other imports are done, or raise TOUCHSTONE_MAX_TEMPORARY_MB.",
            retry_after=_RETRY_AFTER,
        )


class TemporaryFile(io.RawIOBase):
    """In memory up to `in_memory` bytes. owner: the project's key; None: the operator's own, which no limit holds for.

    Raises TooMuchTemporary where all files of the project would be larger than the limit.
    """

    def __init__(self, owner: int | None, in_memory: int) -> None:
        self._owner, self._in_memory = owner, in_memory
        self._file: Any = io.BytesIO()
        self._path: Path | None = None
        self._since_counted = 0

    def write(self, data: Any) -> int:
        size = len(data)
        if self._path is None and self._file.tell() + size > self._in_memory:
            self._roll()
        if self._path is not None:
            self._since_counted += size
            if self._since_counted >= _STEP:
                self._count(size)
        self._file.write(data)
        return size

    def readinto(self, buffer: Any) -> int:
        found: int = self._file.readinto(buffer)
        return found

    def seek(self, place: int, whence: int = os.SEEK_SET) -> int:
        found: int = self._file.seek(place, whence)
        return found

    def tell(self) -> int:
        found: int = self._file.tell()
        return found

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            self._file.close()
            if self._path is not None:
                self._path.unlink(missing_ok=True)
        super().close()

    def _roll(self) -> None:
        folder = folder_of(self._owner)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = home_path("temporary", folder.name, secrets.token_hex(16))
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
        began, self._file = self._file, os.fdopen(handle, "w+b", buffering=0)
        self._file.write(began.getbuffer())
        self._count(0)

    def _count(self, more: int) -> None:
        self._since_counted = 0
        if self._owner is not None and temporary_bytes(self._owner) + more > settings.MAX_TEMPORARY_BYTES:
            self.close()
            raise TooMuchTemporary(settings.MAX_TEMPORARY_BYTES)


def folder_of(owner: int | None) -> Path:
    return home_path("temporary", "operator" if owner is None else owner)


def temporary_bytes(owner: int | None) -> int:
    """Of all files that living processes have; those of dead ones are removed."""
    total = 0
    folder = folder_of(owner)
    for path in folder.iterdir() if folder.is_dir() else ():
        with suppress(FileNotFoundError):
            total += 0 if _is_abandoned(path) else path.stat().st_size
    return total


def _is_abandoned(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        # A file that was made this moment may not be locked yet.
        if path.stat().st_size == 0:
            return False
        path.unlink(missing_ok=True)
        return True
