"""Lines in an order in which `datasets` reads every column with a type that holds for the whole file.

`datasets` takes the types from the first 10 MB: objects that differ in their keys, or values that differ in type, are
read as JSON, which gives back what was written; where all are alike at first, later ones are cast or lose their other
keys. So the lines that show a difference come first, one for each.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

LeftOut = Counter[str]  # reason to number of records or images
Row = dict[str, Any]
Path = tuple[str, ...]
_ITEM = "[]"  # in a path: any element of a list
_TYPES: dict[type, str] = {str: "text", bool: "boolean", int: "number", float: "number", list: "list"}


class ColumnTypes:
    """The types of the values seen so far, by path."""

    def __init__(self) -> None:
        self._types: dict[Path, Any] = {}
        self._mixed: set[Path] = set()

    def add(self, row: Row) -> bool:
        """Whether the row has a path, or a difference in type at one, that none before it has."""
        return sum(self._add((name,), value) for name, value in row.items()) > 0

    def _add(self, path: Path, value: Any) -> bool:
        if value is None or path in self._mixed:
            return False
        type_ = frozenset(value) if isinstance(value, dict) else _TYPES[type(value)]
        is_new = path not in self._types
        if self._types.setdefault(path, type_) != type_ or type_ == frozenset():
            self._mixed.add(path)
            return True
        if isinstance(value, dict):
            return sum(self._add((*path, name), item) for name, item in value.items()) > 0 or is_new
        if isinstance(value, list):
            return sum(self._add((*path, _ITEM), item) for item in value) > 0 or is_new
        return is_new


def json_lines(rows: Callable[[LeftOut], Iterator[Row]], left_out: LeftOut) -> Iterator[str]:
    """A JSON line for each row, those that tell types first. rows: read twice, so that none is kept in memory.

    What rows leave out is counted once, before the first line.
    """
    types = ColumnTypes()
    leading = [number for number, row in enumerate(rows(left_out)) if types.add(row)]
    first = set(leading)
    yield from (json_line(row) for number, row in _until(rows(Counter()), leading) if number in first)
    yield from (json_line(row) for number, row in enumerate(rows(Counter())) if number not in first)


def _until(rows: Iterator[Row], numbers: list[int]) -> Iterator[tuple[int, Row]]:
    """The rows up to the last of these numbers."""
    last = numbers[-1] if numbers else -1
    for number, row in enumerate(rows):
        if number > last:
            return
        yield number, row


def json_line(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"
