"""What of every public trace file is read: docs/formats.md.

`python -m benchmarks.formats` reads each file of the data folder's `wild/` and `cases/import/`, counts what it holds,
and looks for every value of the source in what was read. Ends with 1 where a trajectory comes back from ATIF unequal.
"""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import django

from benchmarks.docs_writer import write_between
from benchmarks.public_data import data_folder

if TYPE_CHECKING:
    from workers.schema import Trajectory

_DOCS = Path(__file__).parents[1] / "docs/formats.md"
_FOLDERS = ("wild", "cases/import")
_NOT_DATA = ("SOURCE", "LICENSE.upstream")
_LONGEST = 220  # characters of a refusal in the table
COUNTS = ("trajectories", "messages", "calls", "results", "tied", "reasoning", "pictures", "speakers")


@dataclass(slots=True)
class FileRead:
    """What one file holds. has: which of outcome, cost and usage any trajectory states. kept, dropped: values that are
    only in `extra` or metadata, and in nothing. equal: trajectories that ATIF gives back."""

    name: str
    kinds: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    has: set[str] = field(default_factory=set)
    values: int = 0
    kept: int = 0
    dropped: int = 0
    equal: int = 0
    refusals: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {
            "file": self.name,
            "kinds": dict(self.kinds),
            **{name: self.counts[name] for name in COUNTS},
            "has": sorted(self.has),
            "values": self.values,
            "kept": self.kept,
            "dropped": self.dropped,
            "equal": self.equal,
            "refusals": self.refusals,
        }


def read_file(path: Path) -> FileRead:
    from apps.trajectories.import_reader import ImportReader, read_import_records
    from tests.trajectories.real_files import comes_back
    from workers.errors import InvalidRecord

    found, reader = FileRead(path.name), ImportReader(None)
    with path.open("rb") as stream:
        records = [part for record in read_import_records(stream) for part in reader.parts(record)]
    for record in [*records, *reader.rest()]:
        try:
            reader.prepare(record)
            trajectory, uses = reader.read_fields(record)
        except InvalidRecord as error:
            found.refusals.append(error.message)
            continue
        name = reader.format_name(record)
        found.kinds[name] += 1
        _count(found, trajectory)
        found.values += sum(1 for _ in _leaves(record.document))
        found.kept += sum(use.use == "kept" for use in uses)
        found.dropped += sum(use.use == "dropped" for use in uses)
        found.equal += comes_back(trajectory)
    return found


def _count(found: FileRead, trajectory: "Trajectory") -> None:
    from workers.schema.tool_results import call_places

    steps = trajectory.steps
    parts = [part for step in steps for part in step.message]
    parts += [part for step in steps for result in step.observation for part in result.content]
    found.counts += Counter(
        trajectories=1,
        messages=sum(step.source != "environment" for step in steps),
        calls=sum(len(step.tool_calls) for step in steps),
        results=sum(len(step.observation) for step in steps),
        tied=sum(place is not None for step in steps for place in call_places(step)),
        reasoning=sum(bool(step.reasoning) for step in steps),
        pictures=sum(part.type == "image" for part in parts),
        speakers=len({step.speaker for step in steps if step.speaker}),
    )
    stated = {"outcome": trajectory.success is not None or trajectory.reward is not None}
    stated |= {name: name in trajectory.metadata for name in ("cost", "usage", "model")}
    found.has |= {name for name, is_there in stated.items() if is_there}


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
    elif value not in (None, ""):
        yield value


def table(files: list[FileRead]) -> list[str]:
    lines = [
        "| file | format | traj. | messages | calls | results | tied | reasoning | pictures | speakers | states |"
        " values | kept only | dropped | equal |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|--:|--:|--:|--:|",
    ]
    for file in files:
        if not file.kinds:
            continue
        counts = " | ".join(f"{file.counts[name]:,}" for name in COUNTS)
        kinds = ", ".join(f"`{name}`" for name in file.kinds)
        states = ", ".join(sorted(file.has)) or "-"
        lines.append(
            f"| {file.name} | {kinds} | {counts} | {states} | {file.values:,} | {file.kept:,} | {file.dropped:,} |"
            f" {file.equal} of {file.counts['trajectories']} |"
        )
    refused = [file for file in files if file.refusals]
    if refused:
        lines += ["", "Records that are rejected, with the message for the first:", ""]
        lines += ["| file | rejected | message |", "|---|--:|---|"]
        lines += [f"| {file.name} | {len(file.refusals)} | {_short(file.refusals[0])} |" for file in refused]
    return lines


def _short(message: str) -> str:
    text = " ".join(message.split()).replace("|", "\\|")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."


def measure(folders: list[Path]) -> list[FileRead]:
    paths = [path for folder in folders for path in sorted(folder.iterdir())]
    return [read_file(path) for path in paths if path.is_file() and path.name not in _NOT_DATA]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.formats", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="other folders, whose files are read instead")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="the same: it takes seconds")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/formats.md")
    options = parser.parse_args()
    files = measure(options.folders or [data_folder() / name for name in _FOLDERS])
    print(
        json.dumps({"files": [file.as_json() for file in files]}) if options.json else "\n".join(table(files))
    )
    if options.write:
        from apps.trajectories import formats

        write_between(_DOCS, "formats.detected", formats.table().splitlines())
        write_between(_DOCS, "formats", table(files))
    return 0 if all(file.equal == file.counts["trajectories"] for file in files) else 1


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")
    django.setup()
    sys.exit(main())
