"""Folders in the files of a run: contents in parts that are named by their SHA-256, and indexes of whole folders.

Parts are written before the index that names them, and an index is written once: a reader sees a folder whole or not
at all, a part is sent once however often it is in a folder, and what comes back is what was sent.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

import msgspec

from workers.errors import RewardError
from workers.launch.part_cache import PartCache
from workers.launch.run_files import RunFiles

PART_BYTES = 32 * 2**20
_PARTS = "parts"
_KEPT_BETWEEN_RUNS = "pretrained/"  # files of an index that a cache has
_KEPT = 2  # indexes: a reader may be at the one before the newest


class FolderIndex(msgspec.Struct, frozen=True):
    """files: by relative path the digests of its parts, in order."""

    files: dict[str, tuple[str, ...]]

    @property
    def digests(self) -> set[str]:
        return {digest for parts in self.files.values() for digest in parts}


def write_folder(
    files: RunFiles, prefix: str, paths: Mapping[str, Path], number: int, *, known: set[str] | None = None
) -> FolderIndex:
    """Store `paths`, by their relative names, as index `number` below `prefix`.

    known: digests that are stored, which is added to. Raises FileNotFoundError where a file goes away meanwhile.
    """
    stored = set(files.names(f"{prefix}/{_PARTS}")) if known is None else known
    index = FolderIndex(
        {name: tuple(_write_parts(files, prefix, path, stored)) for name, path in paths.items()}
    )
    files.write(_index_name(prefix, number), msgspec.json.encode(index))
    return index


def forget_older(files: RunFiles, prefix: str, *, known: set[str] | None = None) -> None:
    """Delete all indexes but the newest two, and parts that neither has. Only the one that writes may call it."""
    names = files.names(f"{prefix}/index")
    for name in names[:-_KEPT]:
        files.delete(f"{prefix}/index/{name}")
    kept = {digest for name in names[-_KEPT:] for digest in _read_index(files, prefix, name).digests}
    stored = set(files.names(f"{prefix}/{_PARTS}")) if known is None else known
    for digest in sorted(stored - kept):
        files.delete(f"{prefix}/{_PARTS}/{digest}")
        stored.discard(digest)


def drop_file(files: RunFiles, prefix: str, name: str) -> None:
    """Store the newest folder without the file `name`, and delete all others with their parts."""
    newest = newest_index(files, prefix)
    if newest is None or name not in newest[1].files:
        return
    number, index = newest
    kept = FolderIndex({other: parts for other, parts in index.files.items() if other != name})
    files.write(_index_name(prefix, number + 1), msgspec.json.encode(kept))
    for old in files.names(f"{prefix}/index")[:-1]:
        files.delete(f"{prefix}/index/{old}")
    forget_older(files, prefix)


def newest_index(files: RunFiles, prefix: str) -> tuple[int, FolderIndex] | None:
    """The newest index with its number; None where there is none."""
    names = files.names(f"{prefix}/index")
    if not names:
        return None
    return int(names[-1].removesuffix(".json")), _read_index(files, prefix, names[-1])


def read_folder(
    files: RunFiles, prefix: str, index: FolderIndex, folder: Path, *, cache: PartCache | None = None
) -> None:
    """Write the files of the index below `folder`, with the SHA-256 of each part checked. cache: for weights."""
    for name, digests in index.files.items():
        kept = cache if name.startswith(_KEPT_BETWEEN_RUNS) else None
        target = folder / _checked(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.fetched")
        with part.open("wb") as out:
            for digest in digests:
                content = _read_part(files, f"{prefix}/{_PARTS}", digest, kept)
                if hashlib.sha256(content).hexdigest() != digest:
                    raise RewardError(
                        f"a part of {name} is damaged in the artifact store; start the run again."
                    )
                out.write(content)
        part.replace(target)


def _read_part(files: RunFiles, parts: str, digest: str, cache: PartCache | None) -> bytes:
    if cache is None:
        return files.read(f"{parts}/{digest}")
    return cache.read(digest, lambda: files.read(f"{parts}/{digest}"))


def folder_files(folder: Path, *, without: Iterable[str] = ()) -> dict[str, Path]:
    """Every file below `folder` by its relative name, but for unfinished ones, hidden ones, and `without`: names of
    files and folders at the top."""
    left_out = set(without)
    found = {}
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        is_hidden = any(part.startswith(".") for part in relative.parts)
        if is_hidden or relative.parts[0] in left_out or path.suffix == ".part" or not path.is_file():
            continue
        found[relative.as_posix()] = path
    return found


def _write_parts(files: RunFiles, prefix: str, path: Path, stored: set[str]) -> Iterator[str]:
    with path.open("rb") as source:
        while content := source.read(PART_BYTES):
            digest = hashlib.sha256(content).hexdigest()
            if digest not in stored:
                files.write(f"{prefix}/{_PARTS}/{digest}", content)
                stored.add(digest)
            yield digest


def _index_name(prefix: str, number: int) -> str:
    return f"{prefix}/index/{number:09d}.json"


def _read_index(files: RunFiles, prefix: str, name: str) -> FolderIndex:
    return msgspec.json.decode(files.read(f"{prefix}/index/{name}"), type=FolderIndex)


def _checked(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or not path.parts or any(part in ("", ".", "..") for part in path.parts):
        raise RewardError(f"{name!r} in an index of files leads out of its folder.")
    return path
