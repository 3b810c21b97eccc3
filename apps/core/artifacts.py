"""Files and folders that are too large for rows, over storages["artifacts"]: a local folder, or S3.

A name is a relative POSIX path. Folders are stored file by file; `stage` gives a local path to read from, so that
several machines need no shared disk.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from django.conf import settings
from django.core.files import File
from django.core.files.storage import Storage, storages

from apps.core.errors import DomainError, NotFound


def store_file(path: Path, name: str) -> str:
    """Store a local file under `name`, replacing what was there. Returns the name."""
    storage = _storage()
    _check(name)
    if storage.exists(name):
        storage.delete(name)
    with path.open("rb") as source:
        stored = storage.save(name, File(source))
    if stored != name:
        storage.delete(stored)
        raise DomainError(f"The artifact {name} is being written by somebody else; try again.", status=409)
    return name


def store_tree(folder: Path, name: str) -> str:
    """Store every file of a local folder below `name`. Returns the name."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    if not files:
        raise DomainError(f"There is nothing to store in {folder}.")
    for path in files:
        store_file(path, f"{name}/{path.relative_to(folder).as_posix()}")
    return name


def stage(name: str) -> Path:
    """A local path of the stored file or folder `name`: to be read, not written. Raises NotFound."""
    _check(name)
    local = _local_path(name)
    if local is not None:
        if not local.exists():
            raise NotFound(f"The artifact {name} is not in the store.")
        return local
    cached = settings.HOME / "cache" / "artifacts" / name
    if not cached.exists():
        _download(name, cached)
    return cached


def delete_tree(name: str) -> None:
    """Remove the stored file or folder `name`, and what is cached of it here."""
    _check(name)
    storage = _storage()
    for each in list(_names(name)):
        storage.delete(each)
    for path in (_local_path(name), settings.HOME / "cache" / "artifacts" / name):
        if path is not None and path.is_dir():
            shutil.rmtree(path)
        elif path is not None:
            path.unlink(missing_ok=True)


def all_names() -> Iterator[str]:
    """Every file in the store."""
    yield from _names("")


@contextmanager
def opened(name: str) -> Iterator[tuple[IO[bytes], int]]:
    """A stored file and its size in bytes. Raises NotFound."""
    storage = _storage()
    if not storage.exists(name):
        raise NotFound(f"The artifact {name} is not in the store.")
    with storage.open(name, "rb") as file:
        yield file, storage.size(name)


def _storage() -> Storage:
    return storages["artifacts"]


def _check(name: str) -> None:
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts:
        raise DomainError(f"{name!r} is no name for an artifact.")


def _local_path(name: str) -> Path | None:
    """Where the store keeps `name`, if it is a folder of this machine."""
    try:
        return Path(_storage().path(name))
    except NotImplementedError:
        return None


def _names(name: str) -> Iterator[str]:
    """The stored files `name` stands for; of all the store where it is empty."""
    storage = _storage()
    if not name and _local_path(name) is None:
        pass  # a bucket is always there
    elif _local_path(name) is not None:
        folder = _local_path(name)
        if folder is not None and folder.is_file():
            yield name
            return
        if folder is None or not folder.is_dir():
            return
    elif storage.exists(name):
        yield name
        return
    folders, files = storage.listdir(name)
    within = f"{name}/" if name else ""
    yield from (f"{within}{each}" for each in files if each)
    for each in folders:
        yield from _names(f"{within}{each}")


def _download(name: str, target: Path) -> None:
    """Fetch beside the target, then rename: another process never sees half of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".staging-") as scratch:
        whole = Path(scratch) / "whole"
        names = list(_names(name))
        if not names:
            raise NotFound(f"The artifact {name} is not in the store.")
        for each in names:
            local = whole / PurePosixPath(each).relative_to(name) if each != name else whole
            local.parent.mkdir(parents=True, exist_ok=True)
            with _storage().open(each, "rb") as source, local.open("wb") as out:
                shutil.copyfileobj(source, out)
        try:
            os.replace(whole, target)  # noqa: PTH105 - atomic for files
        except OSError:
            if not target.exists():  # a folder cannot replace one another process staged meanwhile
                raise
