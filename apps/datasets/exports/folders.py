"""Exports of several files: written into a folder, and packed into one file for a download."""

import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from apps.core.errors import DomainError

_SAME_DATE = (1980, 1, 1, 0, 0, 0)  # so that equal contents are equal files
_PACKED = frozenset((".parquet",))  # compressed already


def require_new_folder(folder: Path) -> None:
    """Raises DomainError where there are files already, which would be mixed with those of the export."""
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise DomainError(
            f"{folder} exists and is not empty. Name a new folder, or a file that ends with .zip."
        )


def zip_folder(folder: Path, target: Path) -> None:
    """All files of the folder, sorted by name."""
    with zipfile.ZipFile(target, "w", allowZip64=True) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _SAME_DATE)
            entry.compress_type = zipfile.ZIP_STORED if path.suffix in _PACKED else zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            with path.open("rb") as source, archive.open(entry, "w", force_zip64=True) as out:
                shutil.copyfileobj(source, out, 2**20)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="export-") as scratch:
        yield Path(scratch)
