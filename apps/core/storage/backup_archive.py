"""The file a backup is: a tar compressed by zstd, written and read as a stream, that shows whether it is whole;
encrypted (`sealed`) where there is a passphrase.

First member `backup.json`, last `end.json` with the SHA-256 of every one before it.
"""

import hashlib
import io
import json
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import zstandard

from apps.core.errors import DomainError
from apps.core.storage import passphrase_encryption

HEAD, END = "backup.json", "end.json"
_CHUNK = 2**20
_COMPRESSOR = zstandard.ZstdCompressor(6, write_checksum=True)


class ArchiveWriter:
    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._hashes: dict[str, str] = {}

    def add(self, name: str, source: IO[bytes], size: int) -> None:
        """One member of `size` bytes. Raises DomainError where `source` has another size: it is being written."""
        digest = hashlib.sha256()
        info = tarfile.TarInfo(name)
        info.size, info.mtime, info.mode = size, int(time.time()), 0o600
        try:
            self._tar.addfile(info, cast(BinaryIO, _Hashed(source, digest)))
        except OSError as error:
            if str(error) != "unexpected end of data":
                raise
            raise DomainError(f"{name} shrank while it was read; create the backup again.") from error
        if source.read(1):
            raise DomainError(f"{name} grew while it was read; create the backup again.")
        self._hashes[name] = digest.hexdigest()

    def add_json(self, name: str, value: dict[str, Any]) -> None:
        text = json.dumps(value, indent=1).encode()
        self.add(name, io.BytesIO(text), len(text))

    def finish(self) -> str:
        """Write the last member; the hash of the whole, over the hashes of its members."""
        whole = _whole(self._hashes)
        self.add_json(END, {"members": dict(self._hashes), "hash": whole})
        return whole


class _Hashed:
    def __init__(self, source: IO[bytes], digest: "hashlib._Hash") -> None:
        self._source, self._digest = source, digest

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self._digest.update(data)
        return data


@contextmanager
def writing(path: Path, passphrase: str = "") -> Iterator[ArchiveWriter]:
    """A new archive, its owner's alone, and at `path` only when it is whole. Raises DomainError if that exists."""
    if path.exists():
        raise DomainError(f"{path} is there already; name a new file.")
    part = path.with_name(f".{path.name}.part")
    try:
        part.unlink(missing_ok=True)
        part.touch(mode=0o600)
        with (
            part.open("wb") as raw,
            _sealing(raw, passphrase) as inner,
            _COMPRESSOR.stream_writer(inner, closefd=False) as out,
            tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT, bufsize=_CHUNK) as tar,
        ):
            yield ArchiveWriter(tar)
        part.replace(path)
    except OSError as error:
        raise DomainError(f"{path} could not be written: {error.strerror or error}.") from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _sealing(raw: BinaryIO, passphrase: str) -> Iterator[BinaryIO]:
    if not passphrase:
        yield raw
        return
    writer = passphrase_encryption.SealedWriter(raw, passphrase)
    yield cast(BinaryIO, writer)
    writer.close()  # not where it was broken off: what is there then is no whole one


class ArchiveReader:
    """Members in order, each to be read before the next one."""

    def __init__(self, tar: tarfile.TarFile, path: Path) -> None:
        self._tar, self._path = tar, path
        self._hashes: dict[str, str] = {}
        self.head = self._first()

    def __iter__(self) -> Iterator[tuple[str, IO[bytes]]]:
        """Name and contents of what lies between the first and the last. Raises DomainError if it is not whole."""
        while (info := self._tar.next()) is not None:
            if info.name == END:
                self._check(self._json(self._file(info).read()))
                return
            digest = hashlib.sha256()
            file = self._file(info)
            yield info.name, cast(IO[bytes], _Hashed(file, digest))
            while rest := file.read(_CHUNK):
                digest.update(rest)
            self._hashes[info.name] = digest.hexdigest()
        raise self._broken("it ends too early")

    def _first(self) -> dict[str, Any]:
        info = self._tar.next()
        if info is None or info.name != HEAD:
            raise self._broken(f"it does not begin with {HEAD}, so it is no backup of Touchstone")
        text = self._file(info).read()
        self._hashes[HEAD] = hashlib.sha256(text).hexdigest()
        return self._json(text)

    def _json(self, text: bytes) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(text)
        except ValueError as error:
            raise self._broken("it is damaged") from error
        return found

    def _file(self, info: tarfile.TarInfo) -> IO[bytes]:
        file = self._tar.extractfile(info)
        if file is None:
            raise self._broken(f"{info.name} is no file")
        return file

    def _check(self, end: dict[str, Any]) -> None:
        members = end.get("members", {})
        if members != self._hashes:
            bad = sorted(name for name, digest in members.items() if self._hashes.get(name) != digest)
            raise self._broken(f"{', '.join(bad[:3]) or 'its list of members'} is not what was written")

    def _broken(self, how: str) -> DomainError:
        return DomainError(
            f"{self._path} cannot be restored: {how}. No row of it was kept; use another backup."
        )


@contextmanager
def reading(path: Path, passphrase: str = "") -> Iterator[ArchiveReader]:
    """Raises DomainError where `path` is missing, no backup, damaged, or encrypted under another passphrase.

    One that is encrypted is looked at to its end before any of it is given.
    """
    if not path.is_file():
        raise DomainError(f"The file {path} does not exist.")
    try:
        with (
            path.open("rb") as raw,
            _opening(raw, path, passphrase) as inner,
            zstandard.ZstdDecompressor().stream_reader(inner) as source,
            tarfile.open(fileobj=source, mode="r|", bufsize=_CHUNK) as tar,
        ):
            yield ArchiveReader(tar, path)
    except (zstandard.ZstdError, tarfile.TarError, EOFError) as error:
        raise DomainError(
            f"{path} cannot be restored: it is damaged, or no backup of Touchstone ({error}). No row of it was kept; "
            "use another backup."
        ) from error


@contextmanager
def _opening(raw: BinaryIO, path: Path, passphrase: str) -> Iterator[IO[bytes]]:
    if not passphrase_encryption.is_sealed(raw):
        if passphrase:
            raise DomainError(
                f"{path} is not encrypted, so a passphrase does not show whose it is. If it is yours all the same, "
                "leave the passphrase out."
            )
        yield raw
        return
    if not passphrase:
        raise DomainError(
            f"{path} is encrypted. Give its passphrase: --passphrase-file FILE, or TOUCHSTONE_BACKUP_PASSPHRASE."
        )
    try:
        whole = passphrase_encryption.SealedReader(raw, passphrase)
        while whole.read(_CHUNK):
            pass
        raw.seek(0)
        yield cast(IO[bytes], passphrase_encryption.SealedReader(raw, passphrase))
    except (passphrase_encryption.WrongPassphrase, passphrase_encryption.Damaged) as error:
        raise DomainError(f"{path} cannot be restored: {error.message}. Nothing of it was kept.") from error


def _whole(hashes: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()
