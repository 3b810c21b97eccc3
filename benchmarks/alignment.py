"""Alignment of edited trajectories with the alignment that is known, on real ones: steps placed right.

Steps of every trajectory of the public data are removed, changed (half of the words said and seen are others) or
preceded by a step of another run of the same file. Next to it: what `difflib` finds by equal steps, and steps in order.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Any

import django

from apps.trajectories.alignment import AlignedRow, Alignment, align_trajectories, step_fingerprint
from benchmarks.public_data import data_folder
from tests.trajectories.edits import edited
from workers.schema import Step

FILES = {
    "tau-bench": "tau_bench",
    "SWE-agent": "swe_agent",
    "mini-swe-agent": "mini_swe_agent",
    "Inspect": "inspect_ai",
    "MINT": "mint",
    "Who&When": "who_and_when",
}
SHARES = (0.05, 0.1, 0.2)
MOST = 60  # edited trajectories of a source


def in_order(left: Sequence[Step], right: Sequence[Step]) -> Alignment:
    rows = zip_longest(range(len(left)), range(len(right)))
    return Alignment(0, tuple(AlignedRow(cells, True, None not in cells) for cells in rows))


def by_difflib(left: Sequence[Step], right: Sequence[Step]) -> Alignment:
    """Equal steps next to each other; in between, steps in order."""
    ours, theirs = [step_fingerprint(step) for step in left], [step_fingerprint(step) for step in right]
    codes = SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()
    rows = [cells for _, a, b, c, d in codes for cells in zip_longest(range(a, b), range(c, d))]
    return Alignment(0, tuple(AlignedRow(cells, True, None not in cells) for cells in rows))


WAYS: dict[str, Callable[[Sequence[Step], Sequence[Step]], Alignment]] = {
    "ours": align_trajectories,
    "difflib": by_difflib,
    "in order": in_order,
}


def runs(folder: Path) -> Iterator[tuple[Step, ...]]:
    from apps.trajectories.import_reader import ImportReader, read_import_records

    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".json", ".jsonl", ".traj", ".eval"):
            continue
        reader = ImportReader(None)
        with path.open("rb") as stream:
            for record in read_import_records(stream):
                for part in reader.parts(record):
                    reader.prepare(part)
                    yield reader.read(part).steps


def measure(sources: Sequence[str], shares: Sequence[float], most: int) -> dict[str, Any]:
    """{source: {share: {way: share of steps placed right}, "steps", "seconds"}}"""
    found: dict[str, Any] = {}
    for source in sources:
        random = Random(0)
        every = [steps for steps in runs(data_folder() / FILES[source]) if len(steps) > 3]
        random.shuffle(every)
        others = [step for steps in every for step in steps]
        every = (every * -(-most // len(every)))[:most]  # of few, each several times, edited again
        found[source] = {"trajectories": len(every), "steps": sum(map(len, every)), "seconds": 0.0}
        for share in shares:
            found[source][str(share)] = {}
            edits = [edited(steps, others, share, random) for steps in every]
            for name, way in WAYS.items():
                since = time.perf_counter()
                counts = [one.right(way(steps, one.steps)) for steps, one in zip(every, edits, strict=True)]
                if name == "ours":
                    found[source]["seconds"] += time.perf_counter() - since
                right, of = (sum(each) for each in zip(*counts, strict=True))
                found[source][str(share)][name] = round(right / of, 4)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.alignment", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="few trajectories: does it run?")
    options = parser.parse_args()
    found = measure(list(FILES), SHARES[1:2] if options.quick else SHARES, 5 if options.quick else MOST)
    if options.json:
        print(json.dumps(found))
        return 0
    print(f"{'':16}{'runs':>6}{'steps':>7}  share" + "".join(f"{way:>10}" for way in WAYS))
    for source, one in found.items():
        for share in (key for key in one if key[0].isdigit()):
            values = "".join(f"{one[share][way]:10.1%}" for way in WAYS)
            print(f"{source:16}{one['trajectories']:6}{one['steps']:7}  {share:>5}{values}")
    return 0


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")
    django.setup()
    sys.exit(main())
