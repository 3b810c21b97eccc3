"""What becomes of every field of a document of each format: read, kept, dropped or refused; none may vanish.

`python -m benchmarks.field_coverage [--json]` puts a mark into one field at a time, and adds a marked field to every
object, of the documents that the tests use. Ends with 1 where a mark vanished.
"""

import argparse
import json
import os
import sys
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")
_USES = ("read", "kept", "dropped", "refused", "vanished")


def measure() -> dict[str, Any]:
    from tests.trajectories.field_marks import uses
    from tests.trajectories.test_field_coverage import ALL

    out: dict[str, Any] = {}
    for name, (format, document) in ALL.items():
        found = list(uses(format, document).values())
        out[name] = {"fields": len(found)} | {use: found.count(use) for use in _USES}
    return out


def table(result: dict[str, Any]) -> str:
    rows = [
        "| document | fields | read | kept | dropped | refused | vanished |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, row in result.items():
        shares = " | ".join(f"{100 * row[use] / row['fields']:.1f} %" for use in _USES[:4])
        rows.append(f"| {name} | {row['fields']} | {shares} | {row['vanished']} |")
    total = sum(row["fields"] for row in result.values())
    rows.append(f"| all | {total:,} |  |  |  |  | {sum(row['vanished'] for row in result.values())} |")
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    django.setup()
    result = measure()
    print(json.dumps(result) if options.json else table(result))
    return int(any(row["vanished"] for row in result.values()))


if __name__ == "__main__":
    sys.exit(main())
