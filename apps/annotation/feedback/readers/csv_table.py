"""`csv`: the table that `export_feedback --format csv` writes, also after a spreadsheet saved it again.

Trajectories are named by their content, so the project must have them: import them first (`export_trajectories`).
"""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from apps.annotation.feedback.exports.jsonl_csv import COLUMNS
from apps.annotation.feedback.incoming import Found, UnreadField
from apps.annotation.feedback.readers.record_texts import read_record_text
from apps.core.number_parsing import whole_number
from apps.core.spreadsheets import cell_text
from apps.trajectories.field_coverage import NOT_READ
from workers.errors import InvalidRecord
from workers.schema import clean, parse_json
from workers.schema.decode import escape

_REQUIRED = ("kind", "task", "annotator", "contents")
_JSON = (
    *("ranks", "labels", "corrections", "scale", "chars"),
    *("tags", "taxonomy_tags", "categories", "options"),
)
_NUMBERS = ("strength", "sign", "value", "rating")
_BOOLEANS = ("accept", "several", "demonstration")
_PLACES = ("a", "b", "trajectory", "items")
_COMMON = (
    "annotator",
    "origin",
    "item",
    "campaign",
    "choice",
    "criterion",
    "definition",
    "note",
    "text",
    "taxonomy",
)
_NO_NAME = "the cell is in a column without a name; the path is the number of the column"
_TWICE = "the table has a column of this name before"
_KINDS_WITH_ANCHOR = ("comment",)


def read(stream: BinaryIO) -> Iterator[tuple[int, Found]]:
    """The number is the row's first line, from 1."""
    csv.field_size_limit(2**27)
    line = 1
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="", errors="strict")
    try:
        sample = text.readline()
        delimiter = max(",;\t", key=sample.count)  # spreadsheets of some countries write semicolons
        header = [cell.strip() for cell in next(csv.reader([sample], delimiter=delimiter), [])]
        missing = [name for name in _REQUIRED if name not in header]
        if missing:
            message = (
                f"the table has no column {', '.join(missing)}; is it from `export_feedback --format csv`?"
            )
            yield 1, InvalidRecord(message)
            return
        rows = csv.reader(text, delimiter=delimiter)
        line = 2
        for row in rows:
            if any(cell.strip() for cell in row):
                yield from _read_row(line, header, row)
            line = rows.line_num + 2
    except (UnicodeDecodeError, csv.Error) as error:
        yield line, InvalidRecord(f"not a CSV table in UTF-8: {error}. Save it as `CSV UTF-8`.")
    finally:
        text.detach()  # the stream is the caller's


def _read_row(line: int, header: list[str], row: list[str]) -> Iterator[tuple[int, Found]]:
    """The record of a row, and its cells that are not read."""
    first: dict[str, str] = {}
    for name, cell in zip(header, row, strict=False):
        first.setdefault(name, cell)
    cells = {name: clean(cell_text(cell))[0] for name, cell in first.items() if cell != ""}
    try:
        yield line, read_record_text(_record(cells), (), pointer="")
    except InvalidRecord as error:
        yield line, error
        return
    for place, cell in enumerate(row):
        name = header[place] if place < len(header) else ""
        if cell.strip() and name not in COLUMNS:
            path = f"/{escape(name)}" if name else f"/{place + 1}"
            yield line, UnreadField(path, "dropped", NOT_READ if name else _NO_NAME)
        elif cell.strip() and name in header[:place]:
            yield line, UnreadField(f"/{escape(name)}", "dropped", _TWICE)


def _record(cells: dict[str, str]) -> dict[str, Any]:
    """The record with indices for its trajectories, in the order of `contents`."""
    contents = _json(cells, "contents")
    if not isinstance(contents, list):
        raise InvalidRecord("expected a JSON array of content hashes.", pointer="/contents")
    record: dict[str, Any] = {name: cells[name] for name in _COMMON if name in cells}
    record |= {name: _json(cells, name) for name in _JSON if name in cells and name != "chars"}
    record |= {name: _number(cells[name], name) for name in _NUMBERS if name in cells}
    kind = cells.get("kind")
    record |= {name: _boolean(cells[name], name) for name in _BOOLEANS if name in cells}
    if "first_error" in cells:
        text = cells["first_error"]
        record["first_error"] = None if text == "none" else _number(text, "first_error")
    if kind in _KINDS_WITH_ANCHOR and "first_step" in cells:
        anchor = {
            "steps": [_number(cells[name], name) for name in ("first_step", "last_step") if name in cells]
        }
        record["anchor"] = anchor | {name: _json(cells, name) for name in ("chars",) if name in cells}
        if "quote" in cells:
            record["anchor"]["quote"] = cells["quote"]
    numbers = _numbers(cells)
    record |= _indices(cells, len(contents))
    made: dict[str, Any] = {"adjudication": _boolean(cells.get("adjudication", "False"), "adjudication")}
    made |= {name: cells[name] for name in ("purpose", "explanation") if name in cells}
    task = {"id": cells.get("task", "")} | (
        {"instruction": cells["instruction"]} if "instruction" in cells else {}
    )
    places = [
        {"content": content, "number": numbers[place] if place < len(numbers) else None}
        for place, content in enumerate(contents)
    ]
    return record | {"kind": kind, "task": task, "made": made, "trajectories": places}


def _indices(cells: dict[str, str], count: int) -> dict[str, Any]:
    if "items" in cells:
        return {"items": list(range(count))}
    return {name: place for place, name in enumerate(name for name in _PLACES if name in cells)}


def _numbers(cells: dict[str, str]) -> list[int | None]:
    if "items" in cells:
        items = _json(cells, "items")
        return [whole_number(str(item)) for item in items] if isinstance(items, list) else []
    return [whole_number(cells[name]) for name in _PLACES if name in cells]


def _json(cells: dict[str, str], name: str) -> Any:
    try:
        return parse_json(cells.get(name, "null"))
    except InvalidRecord as error:
        raise error.at(f"/{name}") from None


def _number(text: str, name: str) -> float | int:
    try:
        number = json.loads(text)
    except (ValueError, RecursionError):
        number = None
    if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) < 2**63:
        raise InvalidRecord(f"expected a number, got {text[:40]!r}.", pointer=f"/{name}")
    return int(number) if float(number).is_integer() else number


def _boolean(text: str, name: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise InvalidRecord(f"expected True or False, got {text[:40]!r}.", pointer=f"/{name}")
    return text.lower() == "true"
