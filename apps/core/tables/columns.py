"""What a table declares: its columns, filters, and the actions on selected rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from django.db.models import QuerySet
from django.db.models.expressions import Combinable

ColumnSort = str | Combinable | Callable[[Any], Any]


@dataclass(frozen=True)
class TableColumn:
    """value: what the cell holds, and the CSV file: a path of attributes (`task.external_id`) or a function of the row;
    the name where it is left out. template: draws the cell, with `row`, `value` and the context of the page. sort: an
    expression of the database, or for rows in memory a function of the row; empty for no sorting. is_indexed: an index
    has this order, so that any number of rows is sorted by it. is_link: the cell links to the row. is_fixed: always
    shown. help: shown on hover of the header."""

    name: str
    label: str
    value: str | Callable[[Any], Any] = ""
    template: str = ""
    sort: ColumnSort = ""
    kind: Literal["text", "number", "percent", "time", "state"] = "text"
    is_indexed: bool = False
    is_link: bool = False
    is_shown: bool = True
    is_fixed: bool = False
    help: str = ""

    @property
    def is_sortable(self) -> bool:
        return self.sort != ""

    @property
    def css(self) -> str:
        classes = {"number": "number", "percent": "number", "time": "caption text-nowrap"}.get(self.kind, "")
        return f"{classes} table-title" if self.is_fixed else classes

    @property
    def begins_descending(self) -> bool:
        """What people look for first in numbers and times is the largest."""
        return self.kind in ("number", "percent", "time")

    def value_of(self, row: Any) -> Any:
        return self.value(row) if callable(self.value) else read_path(row, self.value or self.name)

    def file_value(self, row: Any) -> Any:
        """What a CSV file has."""
        value = self.value_of(row)
        if isinstance(value, datetime):
            return value.isoformat(timespec="seconds")
        if isinstance(value, bool):
            return "yes" if value else "no"
        return "" if value is None else value


@dataclass(frozen=True)
class TableFilter:
    """A select over a table. choices: (value, label), without that for any. apply: a lookup of the queryset, or a
    function that narrows the rows to a value."""

    name: str
    label: str
    choices: Sequence[tuple[str, str]]
    apply: str | Callable[[Any, str], Any]

    def narrow(self, rows: Any, value: str) -> Any:
        if callable(self.apply):
            return self.apply(rows, value)
        if isinstance(rows, QuerySet):
            return rows.filter(**{self.apply: value})
        return [row for row in rows if str(read_path(row, self.apply)) == value]


@dataclass(frozen=True)
class TableAction:
    """A button for selected rows. Its form sends `selected` (keys), or `all_matching` and `query` (the filter of the
    address), to `url`. roles: who sees it; empty for all who see the list. takes_all: whether it works on all that
    match. template: further fields, inside the form. confirm: asked before it is sent."""

    name: str
    label: str
    url: str
    roles: tuple[str, ...] = ()
    method: Literal["get", "post"] = "post"
    takes_all: bool = True
    template: str = ""
    confirm: str = ""
    is_danger: bool = False


def read_path(row: Any, path: str) -> Any:
    """The attribute at a path of dots or double underscores; None where a part of it is None."""
    for name in path.replace("__", ".").split("."):
        if row is None:
            return None
        row = row.get(name) if isinstance(row, dict) else getattr(row, name)
        if callable(row):
            row = row()
    return row
