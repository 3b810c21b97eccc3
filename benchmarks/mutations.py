"""Do imports end in rows or in a clear error, whatever is wrong with a file?

`python -m benchmarks.mutations [--json] [--quick] [--format NAME]` breaks real files of every format in 20,000 ways
(formats without published files: documents of ours), reads what comes of it, and puts what can be read into a database
of its own, every step of it, and reads it again. Ends with 1 where anything but a trajectory or an error that says
what and where came of one; the file that did it is written next to. `--mutations N --start M` does N of them in another
order for each M, so that a long run can be done in parts.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

import django

from benchmarks.import_scaling import own_database, server
from benchmarks.public_data import data_folder

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")
MUTATIONS, QUICK, AT_ONCE = 20_000, 50, 200
_LARGEST = 20_000  # bytes of a file that is broken so often
_LARGEST_WILD = 70_000  # of one of several public files of many kinds
_ARRAYS = ("agentrx", "tau-bench")  # whose files are lists of runs


def files() -> dict[str, list[bytes]]:
    """By format what is broken: of published files the smaller ones, record by record."""
    from tests.trajectories.mutations import DOCUMENTS
    from tests.trajectories.real_files import SOURCES, documents

    found = {name: [json.dumps(one).encode()] for name, one in DOCUMENTS.items()}
    for source in SOURCES:
        raw = [
            json.dumps(record).encode()
            for path in sorted(data_folder().glob(source.pattern))
            for document in documents(path)
            for record in (
                document if isinstance(document, list) and source.format in _ARRAYS else [document]
            )
        ]
        raw.sort(key=len)
        found[source.format] = [content for content in raw[:20] if len(content) <= _LARGEST] or raw[:1]
    for name, contents in wild_files().items():
        found[name] = [*found[name], *contents]
    return found


def wild_files() -> dict[str, list[bytes]]:
    """By format, the data folder's `wild/`: logs of events whole, else record by record."""
    from apps.trajectories import formats
    from apps.trajectories.import_reader import ImportReader, read_import_records

    found: dict[str, list[bytes]] = {}
    folder = data_folder() / "wild"
    for path in sorted(folder.glob("*__*")) if folder.is_dir() else ():
        reader = ImportReader(None)
        with path.open("rb") as stream:
            records = [record for record in read_import_records(stream) if record.error is None]
        for record in records:
            list(reader.parts(record))
        if reader.format is None:
            continue
        lines = [json.dumps(record.document).encode() for record in records]
        is_log = reader.format.gather is not None and len(lines) > 1
        contents = [b"\n".join(lines)] if is_log else lines[:20]
        found.setdefault(reader.format.name, []).extend(
            content for content in contents if len(content) <= _LARGEST_WILD
        )
    return {name: contents for name, contents in found.items() if name in formats.FORMATS}


def measure(mutations: int, only: list[str] | None, start: int = 0) -> dict[str, Any]:
    from apps.accounts.models import Project
    from tests.trajectories.mutations import TEXTS, mutated, mutated_text, read_or_refused, stored_whole

    project = Project.objects.create(slug="mutations", name="Mutations")
    out: dict[str, Any] = {}
    for name, raw in (files() | {name: [text] for name, text in TEXTS.items()}).items():
        if only and name not in only:
            continue
        dice = random.Random(f"{name} {start}" if start else name)
        row = {"files": len(raw), "mutations": mutations, "read": 0, "refused": 0, "failed": 0}
        waiting: list[Any] = []
        for number in range(mutations):
            change = mutated_text if name in TEXTS else mutated
            data = change(raw[number % len(raw)], dice)
            try:
                good, bad = read_or_refused(data, None if name in TEXTS else name)
                waiting += good
                if len(waiting) >= AT_ONCE or number == mutations - 1:
                    stored_whole(project, waiting)
                    waiting = []
            except Exception:
                row["failed"] += 1
                path = Path(tempfile.gettempdir()) / f"mutation-{name}-{number}"
                path.write_bytes(data)
                sys.stderr.write(f"{name} {number}, kept as {path}:\n{traceback.format_exc()}\n")
                waiting = []
                continue
            row["read"] += len(good)
            row["refused"] += len(bad)
        out[name] = row
        print(json.dumps({name: row}), file=sys.stderr, flush=True)
    return out


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutations", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} of each")
    parser.add_argument("--format", action="append", help="only these (all without)")
    parser.add_argument("--mutations", type=int, default=MUTATIONS, help="of each; default: %(default)s")
    parser.add_argument(
        "--start", type=int, default=0, help="number of the first; another one breaks other things"
    )
    options = parser.parse_args()
    with server():
        django.setup()
        with own_database():
            found = measure(QUICK if options.quick else options.mutations, options.format, options.start)
    if options.json:
        print(json.dumps(found))
    else:
        print(
            "| format | files | mutations | trajectories | refused | neither |\n|---|---:|---:|---:|---:|---:|"
        )
        for name, row in found.items():
            print(f"| `{name}` | " + " | ".join(f"{value:,}" for value in row.values()) + " |")
    return 1 if any(row["failed"] for row in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
