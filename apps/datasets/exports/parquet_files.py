"""Parquet files of one schema, written in row groups, so that memory does not grow with their number of rows."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from apps.core.errors import DomainError

GROUP_ROWS = 256
GROUP_BYTES = 8 * 2**20  # of values in a row group
SHARD_BYTES = 256 * 2**20  # of a file, compressed
MISSING = (
    "Writing Parquet needs pyarrow, which is not installed. Install it with `pip install pyarrow` (the extra "
    "`parquet`), or export as JSON lines."
)


def require_pyarrow() -> Any:
    """The module. Raises DomainError where it is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise DomainError(MISSING) from None
    return pyarrow


class ParquetShards:
    """Rows into files `NAME-00000-of-00002.parquet` of a folder; without a row, no file."""

    def __init__(self, folder: Path, name: str, schema: Any, *, shard_bytes: int | None = None) -> None:
        self._arrow = require_pyarrow()
        self._folder, self._name, self._schema = folder, name, schema
        self._shard_bytes = shard_bytes or SHARD_BYTES
        self._writer: Any = None
        self._paths: list[Path] = []
        self._waiting: list[dict[str, Any]] = []
        self._bytes = 0
        self.rows = 0

    def add(self, row: dict[str, Any]) -> None:
        self._waiting.append(row)
        self._bytes += _size(row)
        self.rows += 1
        if len(self._waiting) >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
            self._write_group()

    def close(self) -> list[Path]:
        """The files, with their number in their names."""
        self._write_group()
        self._close_shard()
        total = len(self._paths)
        return [
            path.rename(self._folder / f"{self._name}-{number:05}-of-{total:05}.parquet")
            for number, path in enumerate(self._paths)
        ]

    def abort(self) -> None:
        """After an error: removes what was written. After `close` it does nothing."""
        self._close_shard()
        for path in self._paths:
            path.unlink(missing_ok=True)

    def _write_group(self) -> None:
        if not self._waiting:
            return
        if self._writer is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._folder / f".{self._name}-{len(self._paths):05}"
            self._writer = self._arrow.parquet.ParquetWriter(path, self._schema, compression="zstd")
            self._paths.append(path)
        self._writer.write_table(self._arrow.Table.from_pylist(self._waiting, schema=self._schema))
        self._waiting, self._bytes = [], 0
        if self._paths[-1].stat().st_size >= self._shard_bytes:
            self._close_shard()

    def _close_shard(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def write_file(path: Path, schema: Any, rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Write the rows into one file, which is there without a row too; yields its name once per row."""
    arrow = require_pyarrow()
    path.parent.mkdir(parents=True, exist_ok=True)
    waiting: list[dict[str, Any]] = []
    size = 0
    with arrow.parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for row in rows:
            waiting.append(row)
            size += _size(row)
            yield path.name
            if len(waiting) >= GROUP_ROWS or size >= GROUP_BYTES:
                writer.write_table(arrow.Table.from_pylist(waiting, schema=schema))
                waiting, size = [], 0
        if waiting:
            writer.write_table(arrow.Table.from_pylist(waiting, schema=schema))


def _size(value: Any) -> int:
    """About how many bytes a value takes."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_size, value.values()))
    return sum(map(_size, value)) if isinstance(value, list) else 8
