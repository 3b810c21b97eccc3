"""The faults that an audit of the mathematics found, each measured again: `python -m benchmarks.statistical_checks`.

Fourteen experiments with known truth. `before`: what the audit measured, with the same experiments, on the version it
looked at. `now`: measured by this run. Ends with 1 where a value is not what `wanted` says. --json: one JSON array.
--quick: smaller samples, of which nothing is wanted.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable

import django

from benchmarks.statistical_simulations import Check, simulated_checks

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.statistical_checks", description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", type=int, nargs="*", metavar="NUMBER", help="of the table")
    options = parser.parse_args()
    django.setup()
    # Some of it needs the apps to be ready.
    from benchmarks.statistical_mechanisms import mechanism_checks
    from benchmarks.statistical_trainings import training_checks

    rows = []
    for number, measure in sorted({**simulated_checks(), **mechanism_checks(), **training_checks()}.items()):
        if options.only and number not in options.only:
            continue
        rows.append(_timed(number, measure, options.quick))
    print(json.dumps(rows, indent=2) if options.json else _table(rows))
    failed = [row for row in rows if not row["holds"]]
    return int(bool(failed) and not options.quick)


def _timed(number: int, measure: Callable[[bool], Check], quick: bool) -> dict[str, object]:
    started = time.monotonic()
    check = measure(quick)
    seconds = round(time.monotonic() - started)
    sys.stderr.write(f"{number}: {check.now} ({seconds} s)\n")
    return {"number": number, **check.as_dict(), "seconds": seconds}


def _table(rows: list[dict[str, object]]) -> str:
    lines = ["| | what is measured | before | now | wanted |", "|---|---|---|---|---|"]
    lines += [
        f"| {row['number']} | {row['what']} | {row['before']} | {row['now']} | {row['wanted']}"
        f"{'' if row['holds'] else ' **(not met)**'} |"
        for row in rows
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
