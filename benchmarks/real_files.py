"""Every published file of trajectories: what was read, what its source says, and whether it comes back equal.

`python -m benchmarks.real_files` prints the table of docs/trajectories.md. Ends with 1 where a count differs.
"""

import argparse
import json
import os
import sys
from typing import Any

import django

from benchmarks.public_data import data_folder

KEYS = ("trajectories", "messages", "calls", "observations")


def measure() -> list[dict[str, Any]]:
    from tests.trajectories.real_files import SOURCES, comes_back, counts, expected, read

    out = []
    for source in SOURCES:
        paths = sorted(data_folder().glob(source.pattern))
        row: dict[str, Any] = {"source": source.name, "format": source.format, "files": len(paths)}
        row |= dict.fromkeys(KEYS, 0) | {"equal": 0, "back": 0}
        for path in paths:
            _, found = read(path)
            ours = counts(found)
            row |= {key: row[key] + ours[key] for key in KEYS}
            row["equal"] += ours == expected(path, source)
            row["back"] += sum(map(comes_back, found))
        out.append(row)
    return out


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| source | format | files | trajectories | messages | calls | observations | files as their source counts |"
        " equal after ATIF and back |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        numbers = " | ".join(f"{row[key]:,}" for key in ("files", *KEYS))
        lines.append(
            f"| {row['source']} | `{row['format']}` | {numbers} | {row['equal']} of {row['files']} |"
            f" {row['back']:,} of {row['trajectories']:,} |"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real_files", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="the same: it takes seconds")
    options = parser.parse_args()
    rows = measure()
    print(json.dumps({"sources": rows}) if options.json else table(rows))
    good = all(row["equal"] == row["files"] and row["back"] == row["trajectories"] for row in rows)
    return 0 if good else 1


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")
    django.setup()
    sys.exit(main())
