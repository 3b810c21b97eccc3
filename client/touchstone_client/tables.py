"""Rows as a data frame of pandas, or as a data set of `datasets`; both are optional."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from touchstone_client.api_objects import ApiObject
from touchstone_client.errors import MissingExtra

if TYPE_CHECKING:
    import datasets  # type: ignore[import-untyped,import-not-found,unused-ignore]
    import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]


def row_of(entry: Any) -> dict[str, Any]:
    """A row for an object of the API, or for an object of JSON."""
    if isinstance(entry, ApiObject):
        return entry.to_row()
    return dict(entry) if isinstance(entry, Mapping) else {"value": entry}


def to_data_frame(entries: Sequence[Any], columns: Sequence[str]) -> "pandas.DataFrame":
    """A row for each entry, a column for each field of any of them. columns: where there are no entries.

    Raises MissingExtra.
    """
    try:
        import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        raise MissingExtra("to_pandas()", "pandas", "pandas") from None
    rows = [row_of(entry) for entry in entries]
    return pandas.DataFrame(rows) if rows else pandas.DataFrame(columns=list(columns))


def to_data_set(entries: Sequence[Any]) -> "datasets.Dataset":
    """As `to_data_frame`. A column whose values have no common type of Arrow is written as JSON text.

    Raises MissingExtra.
    """
    try:
        import datasets  # type: ignore[import-untyped,import-not-found,unused-ignore]
        import pyarrow  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        raise MissingExtra("to_dataset()", "datasets", "datasets") from None
    rows = [row_of(entry) for entry in entries]
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: _arrow_column(pyarrow, [row.get(name) for row in rows]) for name in names}
    return datasets.Dataset(datasets.table.InMemoryTable(pyarrow.table(columns)))


def _arrow_column(pyarrow: Any, values: list[Any]) -> Any:
    try:
        column = pyarrow.array(values)
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
        column = None
    if column is None or _has_empty_struct(pyarrow, column.type):
        return pyarrow.array(
            [None if value is None else to_json(value) for value in values], pyarrow.string()
        )
    return column


def _has_empty_struct(pyarrow: Any, kind: Any) -> bool:
    """Parquet cannot hold a struct without fields."""
    if pyarrow.types.is_struct(kind):
        return kind.num_fields == 0 or any(_has_empty_struct(pyarrow, each.type) for each in kind)
    return bool(pyarrow.types.is_list(kind)) and _has_empty_struct(pyarrow, kind.value_type)


def to_json(value: Any) -> str:
    """One line of JSON; times as ISO 8601."""
    return json.dumps(value, default=_encode)


def _encode(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, ApiObject):
        return value.to_dict()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
