"""One page of rows in an order, and how many rows there are, at a bounded cost.

Rows of the database are put in order by their keys alone, and only those of the page are loaded: a sort carries no
wide rows, and no joins that the order does not need. Few matches are found by what they are filtered by: the database,
asked for the newest of them, would look through all that are newer than any (`_FEW`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db.models import F, Model, QuerySet
from django.db.models.expressions import Combinable

from apps.core.tables.columns import ColumnSort, read_path

MAX_TABLE_ROWS = 100_000  # that are counted, paged and written to a file; beyond, a filter narrows
_FEW = 1_000
_CHUNK = 500


@dataclass(frozen=True)
class RowOrder:
    """By `sort`, rows without a value last; without it, in the order they have."""

    sort: ColumnSort
    is_descending: bool

    def expressions(self, model: type[Model]) -> list[Any]:
        """Arguments of order_by. An order of columns that are never null is one that an index has."""
        assert isinstance(self.sort, str | Combinable)
        field = F(self.sort) if isinstance(self.sort, str) else self.sort
        nulls_last = True if not isinstance(self.sort, str) or _is_nullable(model, self.sort) else None
        first = field.desc if self.is_descending else field.asc  # type: ignore[attr-defined]
        return [first(nulls_last=nulls_last), "-pk" if self.is_descending else "pk"]


class StoredRows:
    """Of a queryset. load: what is added to the query that loads the rows of a page. indexed_order: taken instead of an
    order that no index has where there are more rows than are counted: to sort them takes longer the more they are."""

    def __init__(
        self,
        rows: QuerySet[Any],
        order: RowOrder,
        load: Callable[[QuerySet[Any]], QuerySet[Any]],
        indexed_order: RowOrder | None = None,
    ) -> None:
        self._load, self._model = load, rows.model
        few = list(rows.order_by().values_list("pk", flat=True)[: _FEW + 1])
        if len(few) <= _FEW:
            self.count, self.is_more = len(few), False
            rows = (rows if rows.query.annotations else self._model._default_manager).filter(pk__in=few)
        else:
            count = rows.order_by()[: MAX_TABLE_ROWS + 1].count()
            self.count, self.is_more = min(count, MAX_TABLE_ROWS), count > MAX_TABLE_ROWS
        self.is_order_refused = self.is_more and indexed_order is not None
        if self.is_more and indexed_order is not None:
            order = indexed_order
        if order.sort != "":
            rows = rows.order_by(*order.expressions(self._model))
        self._keys = rows.values_list("pk", flat=True)

    def page(self, start: int, stop: int) -> list[Any]:
        return self._loaded(list(self._keys[start:stop]))

    def chunks(self) -> Iterator[list[Any]]:
        """All rows in order: those there are now, with few in memory."""
        keys = list(self._keys[:MAX_TABLE_ROWS])
        for start in range(0, len(keys), _CHUNK):
            yield self._loaded(keys[start : start + _CHUNK])

    def _loaded(self, keys: list[Any]) -> list[Any]:
        found = self._load(self._model._default_manager.all()).in_bulk(keys)
        return [found[key] for key in keys if key in found]


class RowsInMemory:
    """Of a sequence: of lists that are short, or made of several tables."""

    def __init__(self, rows: Sequence[Any], order: RowOrder) -> None:
        if order.sort != "":
            keyed = [(_value(row, order.sort), row) for row in rows]
            known = sorted((pair for pair in keyed if pair[0] is not None), key=lambda pair: pair[0])
            known = known[::-1] if order.is_descending else known
            rows = [row for _, row in known] + [row for value, row in keyed if value is None]
        self.count, self.is_more, self._rows = len(rows), False, list(rows)

    def page(self, start: int, stop: int) -> list[Any]:
        return self._rows[start:stop]

    def chunks(self) -> Iterator[list[Any]]:
        for start in range(0, len(self._rows), _CHUNK):
            yield self._rows[start : start + _CHUNK]


def _value(row: Any, sort: ColumnSort) -> Any:
    if isinstance(sort, str):
        return read_path(row, sort)
    assert callable(sort)
    return sort(row)


def _is_nullable(model: type[Model], path: str) -> bool:
    for name in path.split("__"):
        try:
            field: Any = model._meta.get_field("id" if name == "pk" else name)
        except FieldDoesNotExist:
            return True  # an annotation
        if field.null:
            return True
        model = field.related_model or model
    return False
