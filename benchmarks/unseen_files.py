"""What becomes of files that nothing here was written for: `python -m benchmarks.unseen_files FOLDER [--json]`.

Each file of the folder is imported with `auto`. Every text of a file that is longer than 20 characters is then looked
for in what was read, extra and metadata included, and in what the import names as dropped: the strings of JSON, the
cells of tables, the lines of anything else, by decoders of Python and not ours. Ends with 1 where a text vanished.
"""

import argparse
import csv
import io
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")
_LONGER_THAN = 20
_LONGEST = 160  # characters of a message in the table


@dataclass(slots=True)
class UnseenFile:
    """texts: of the source, longer than 20 characters. lost: those of them that vanished. dropped: paths that the
    import names. refused: what it says of the records that it does not read."""

    name: str
    formats: Counter[str] = field(default_factory=Counter)
    texts: int = 0
    lost: list[str] = field(default_factory=list)
    dropped: list[dict[str, Any]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def trajectories(self) -> int:
        return self.formats.total()

    def as_json(self) -> dict[str, Any]:
        return {
            "file": self.name,
            "formats": dict(self.formats),
            "texts": self.texts,
            "lost": self.lost,
            "dropped": self.dropped,
            "refused": self.refused,
        }


def source_texts(raw: bytes) -> list[str]:
    """The texts of a file that have to be somewhere after the import."""
    text = raw.decode("utf-8-sig", "replace")
    documents = _documents(text)
    if documents is None:
        rows = _rows(text) if "," in text.partition("\n")[0] else []
        is_table = len(rows) > 1 and len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows)
        found = [cell for row in rows for cell in row] if is_table else text.splitlines()
    else:
        found = list(_strings(documents))
    return [each.strip() for each in found if len(each.strip()) > _LONGER_THAN]


def _rows(text: str) -> list[list[str]]:
    """Of a table; none of what is no CSV."""
    try:
        return list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error:
        return []


def _documents(text: str) -> list[Any] | None:
    """JSON documents one after another; None where it is something else."""
    decoder, place, found = json.JSONDecoder(), 0, []
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        try:
            document, place = decoder.raw_decode(text, place)
        except ValueError:
            return None
        found.append(document)
    return found


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


def lost_texts(raw: bytes, found: list[Any], refused: Sequence[bytes] = ()) -> list[str]:
    """Texts of a file that are in nothing of what was read of it. found: trajectories. refused: records of the file
    that are not read, whose texts are not looked for."""
    from workers.schema import to_atif

    kept = "\n".join(
        text for trajectory in found for text in _strings([to_atif(trajectory), _keys(to_atif(trajectory))])
    )
    squeezed = _squeezed(kept)
    others = {text for record in refused for text in source_texts(record)}
    return [
        text
        for text in source_texts(raw)
        if text not in kept
        and text not in others
        and _squeezed(text) not in squeezed
        and not _is_taken_apart(text, squeezed)
    ]


def _keys(value: Any) -> list[str]:
    """Keys that JSON in a text, or a member of an object, may have become."""
    found: list[str] = []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += [str(key), *_keys(inner)]
    elif isinstance(value, list):
        for inner in value:
            found += _keys(inner)
    return found


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _is_taken_apart(text: str, squeezed: str) -> bool:
    """Whether all words of a text are there, which became several parts: of a dialogue, a call, or JSON in a text."""
    from apps.trajectories.formats.general.transcript_text import END_MARKS

    if (
        text[:1] in "[{" and (documents := _documents(text)) is not None
    ):  # encoded twice: its own texts are looked for
        return all(
            _squeezed(each) in squeezed or _is_taken_apart(each, squeezed)
            for each in _strings(documents)
            if len(each.strip()) > _LONGER_THAN
        )
    for mark in END_MARKS:
        text = text.replace(mark, "")
    pieces = "".join(each if each.isalnum() else " " for each in text.replace("\\n", " ")).split()
    return all(piece in squeezed for piece in pieces)


def read(path: Path) -> UnseenFile:
    from apps.trajectories.import_reader import ImportReader, read_import_records
    from workers.errors import InvalidRecord

    raw, out, reader = path.read_bytes(), UnseenFile(path.name), ImportReader(None)
    found, others = [], []
    records = [part for record in read_import_records(io.BytesIO(raw)) for part in reader.parts(record)]
    for record in [*records, *reader.rest()]:
        try:
            reader.prepare(record)
            found.append(reader.read(record))
            out.formats[reader.format_name(record)] += 1
        except InvalidRecord as error:
            out.refused.append(error.message)
            others.append(record.raw)
    out.dropped = reader.dropped.as_json()
    if found:
        out.texts, out.lost = len(source_texts(raw)), lost_texts(raw, found, others)
    return out


def table(files: list[UnseenFile]) -> str:
    lines = [
        "| file | format | trajectories | texts | lost | dropped | refused | message |",
        "|---|---|--:|--:|--:|--:|--:|---|",
    ]
    for file in files:
        message = " ".join((file.refused or [""])[0].split()).replace("|", "\\|")[:_LONGEST]
        lines.append(
            f"| {file.name} | {', '.join(file.formats)} | {file.trajectories} | {file.texts} | {len(file.lost)} |"
            f" {sum(each['count'] for each in file.dropped)} | {len(file.refused)} | {message} |"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.unseen_files", description=__doc__)
    parser.add_argument("folder", type=Path, help="of files that are imported one by one")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="the same: it takes seconds a file")
    options = parser.parse_args()
    django.setup()
    files = [read(path) for path in sorted(options.folder.iterdir()) if path.is_file()]
    print(json.dumps({"files": [file.as_json() for file in files]}) if options.json else table(files))
    return int(any(len(file.lost) > sum(each["count"] for each in file.dropped) for file in files))


if __name__ == "__main__":
    sys.exit(main())
