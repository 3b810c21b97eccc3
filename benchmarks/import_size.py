"""Do imports of gigabytes and of 20,000 files take constant memory, at a flat cost per row?

`python -m benchmarks.import_size [--json] [--quick] [--gigabytes 5] [--files 20000] [--only KIND]` imports JSON lines,
one file of many sessions, a Parquet file, a folder of session files and the same files as a zip archive, and prints for
each tenth of an import the seconds per 1,000 rows, and the most memory that the process and the processes it started
had. JSON lines are made while they are read; the files lie in a temporary folder (TMPDIR) until they are read. The
database is one of its own (see import_scaling); what it takes is not counted.
"""

import argparse
import io
import json
import multiprocessing
import os
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

import django

from benchmarks.import_scaling import own_database, server
from benchmarks.size_records import chat_records, session_files, session_lines

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")
PARTS = 10
QUICK = (0.02, 200)  # gigabytes, files
_GROUP_BYTES = 32 * 2**20  # of a row group of the Parquet file
_MB = 2**20


@dataclass(slots=True)
class Source:
    """stream: what is imported. total: records in it."""

    stream: BinaryIO | Path
    total: int


@dataclass(slots=True)
class Tenths:
    """rows, seconds, megabytes (of the process), pool_megabytes (of those it started): of each tenth of an import."""

    total: int
    read: int = 0
    rows: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)
    pool_megabytes: list[float] = field(default_factory=list)
    _began: float = field(default_factory=time.perf_counter)
    _rows_before: int = 0
    _pool_peak: float = 0.0

    def add(self, read: int, rows: int) -> None:
        """read: records since the last time. rows: all that were written so far."""
        self.read += read
        self._pool_peak = max(self._pool_peak, sum(map(_peak_memory, _pool())))
        if self.read * PARTS >= self.total * (len(self.seconds) + 1):
            self.end(rows)

    def end(self, rows: int) -> None:
        """Of a tenth, or of the import."""
        if rows == self._rows_before:
            return
        now = time.perf_counter()
        self.rows.append(rows - self._rows_before)
        self.seconds.append(now - self._began)
        self.megabytes.append(_peak_memory(os.getpid()))
        self.pool_megabytes.append(self._pool_peak)
        self._began, self._rows_before, self._pool_peak = now, rows, 0.0
        for process in (os.getpid(), *_pool()):
            _forget_peak(process)

    def as_json(self) -> dict[str, Any]:
        pairs = zip(self.seconds, self.rows, strict=True)
        return {
            "rows": sum(self.rows),
            "seconds_per_1000": [round(seconds / rows * 1000, 3) for seconds, rows in pairs],
            "megabytes": [round(each) for each in self.megabytes],
            "pool_megabytes": [round(each) for each in self.pool_megabytes],
        }


def _pool() -> list[int]:
    return [process.pid for process in multiprocessing.active_children() if process.pid is not None]


def _peak_memory(process: int) -> float:
    """MB since the peak was forgotten; 0 where the process has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)


def _forget_peak(process: int) -> None:
    try:
        Path(f"/proc/{process}/clear_refs").write_text("5")
    except OSError:
        return


class Lines(io.RawIOBase):
    """A stream of lines that are made while it is read."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines, self._rest = lines, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = next(self._lines, b"")
        piece, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(piece)] = piece
        return len(piece)


def _stream(lines: Iterator[bytes]) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(Lines(lines), _MB))


@contextmanager
def json_lines(size: int, files: int, folder: Path) -> Iterator[Source]:
    yield Source(_stream(chat_records(size)), sum(1 for _ in chat_records(size)))


@contextmanager
def sessions_in_one_file(size: int, files: int, folder: Path) -> Iterator[Source]:
    yield Source(_stream(session_lines(size)), sum(1 for _ in session_lines(size)))


@contextmanager
def parquet(size: int, files: int, folder: Path) -> Iterator[Source]:
    """Rows of unlike texts, so that the file is about as large as they are."""
    import pyarrow
    from pyarrow import parquet as tables

    path, count, group, group_bytes = folder / "rows.parquet", 0, [], 0
    text = pyarrow.string()
    call = pyarrow.struct({"name": text, "arguments": text})
    calls = pyarrow.list_(pyarrow.struct({"id": text, "type": text, "function": call}))
    message = pyarrow.struct({"role": text, "content": text, "tool_call_id": text, "tool_calls": calls})
    columns = {"id": text, "task": text, "messages": pyarrow.list_(message), "success": pyarrow.bool_()}
    schema = pyarrow.schema(columns)
    with tables.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for line in chat_records(size):
            group.append(json.loads(line))
            count, group_bytes = count + 1, group_bytes + len(line)
            if group_bytes >= _GROUP_BYTES:
                writer.write_table(pyarrow.Table.from_pylist(group, schema))
                group, group_bytes = [], 0
        if group:
            writer.write_table(pyarrow.Table.from_pylist(group, schema))
    with path.open("rb") as stream:
        yield Source(stream, count)


@contextmanager
def folder_of_sessions(size: int, files: int, folder: Path) -> Iterator[Source]:
    total = 0
    for name, lines in session_files(files):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(lines))
        total += len(lines)
    yield Source(folder, total)


@contextmanager
def zip_of_sessions(size: int, files: int, folder: Path) -> Iterator[Source]:
    total, path = 0, folder / "sessions.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, lines in session_files(files):
            archive.writestr(name, b"".join(lines))
            total += len(lines)
    with path.open("rb") as stream:
        yield Source(stream, total)


KINDS: dict[str, Callable[[int, int, Path], Any]] = {
    "json_lines": json_lines,
    "sessions_in_one_file": sessions_in_one_file,
    "parquet": parquet,
    "folder_of_sessions": folder_of_sessions,
    "zip_of_sessions": zip_of_sessions,
}


def measure_import(project: Any, source: Source) -> Tenths:
    from django.db import transaction

    from apps.core.storage.unpacking import bounds_of_operator
    from apps.trajectories.services import ImportResult, read_into_project

    result, tenths = ImportResult(), Tenths(source.total)
    _forget_peak(os.getpid())
    with transaction.atomic():
        for read in read_into_project(
            project=project,
            stream=source.stream,
            format="auto",
            keep_good=False,
            result=result,
            bounds=bounds_of_operator(),
        ):
            tenths.add(read, result.created)
    tenths.end(result.created)
    assert not result.rejected, result.rejected[0]
    return tenths


def measure(size: int, files: int, kinds: list[str]) -> dict[str, Any]:
    from apps.accounts.models import Project

    found: dict[str, Any] = {}
    for kind in kinds:
        with (
            own_database(f"import_{kind}"),
            tempfile.TemporaryDirectory(prefix="touchstone-size-") as name,
            KINDS[kind](size, files, Path(name)) as source,
        ):
            project = Project.objects.create(slug="size", name="Size")
            found[kind] = measure_import(project, source).as_json()
        _progress(f"{kind}: {json.dumps(found[kind])}")
    return found


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def table(found: dict[str, Any]) -> str:
    lines = ["| import | rows | measure | " + " | ".join(f"{n}/{PARTS}" for n in range(1, PARTS + 1)) + " |"]
    lines.append("|---|--:|---|" + "--:|" * PARTS)
    measures = (
        ("seconds_per_1000", "s per 1,000 rows"),
        ("megabytes", "MB"),
        ("pool_megabytes", "MB of the pool"),
    )
    for kind, row in found.items():
        for key, title in measures:
            values = " | ".join(f"{value:,}" for value in row[key])
            lines.append(f"| {kind.replace('_', ' ')} | {row['rows']:,} | {title} | {values} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.import_size", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK[0]} gigabytes, {QUICK[1]} files")
    parser.add_argument(
        "--gigabytes", type=float, default=5.0, help="of each large file; default: %(default)s"
    )
    parser.add_argument("--files", type=int, default=20_000, help="of the folder; default: %(default)s")
    parser.add_argument("--only", action="append", choices=list(KINDS), help="only these (all without)")
    options = parser.parse_args()
    gigabytes, files = QUICK if options.quick else (options.gigabytes, options.files)
    with server():
        django.setup()
        found = measure(int(gigabytes * 2**30), files, options.only or list(KINDS))
    print(json.dumps(found) if options.json else table(found))


if __name__ == "__main__":
    main()
