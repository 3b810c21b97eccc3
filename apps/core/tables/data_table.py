"""The table of a list page.

    class RunTable(DataTable[TrainingRun]):
        name = "training-runs"
        nouns = ("training run", "training runs")
        columns = (TableColumn("number", "Run", sort="number", is_link=True, is_fixed=True), ...)
        default_sort = "-number"

        def row_url(self, row): return reverse("training:run-detail", args=[self.project.slug, row.pk])

    return RunTable(request, runs_of(project)).response("training/run_list.html", {"project": project})

The page's template includes "components/table/table.html". The address holds the filter, `sort` and `page`; columns and
rows per page are remembered for each user and table (TableDisplay). `csv=1` answers all rows as a file. Everything
works by links and forms; htmx replaces the table alone, and static/js/table.js adds the keys.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import render
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core.tables.columns import TableAction, TableColumn, TableFilter, read_path
from apps.core.tables.displays import PAGE_SIZES, load_display
from apps.core.tables.row_pages import MAX_TABLE_ROWS, RowOrder, RowsInMemory, StoredRows
from apps.core.tables.table_files import csv_file

RowT = TypeVar("RowT")


@dataclass(frozen=True)
class TableCell:
    column: TableColumn
    value: Any


@dataclass(frozen=True)
class TableRow:
    row: Any
    key: str
    url: str
    label: str
    cells: list[TableCell]


@dataclass(frozen=True)
class TableHeader:
    """url: of the page sorted by this column; empty where it is not sortable. aria: the value of aria-sort."""

    column: TableColumn
    url: str
    aria: str


@dataclass(frozen=True)
class TableFilterField:
    filter: TableFilter
    value: str
    error: str


class DataTable(Generic[RowT]):
    """rows: a queryset without order, or a sequence. filter_query: the filter of the address as actions get it, for
    lists that have their own form; without, it is made of the table's filters. is_filtered: whether such a form
    narrowed the rows. base: the path of the list, where the page is shown at another one. options: what the columns
    and cells of a list need (`self.options`)."""

    names: ClassVar[set[str]] = set()  # of all tables
    name: ClassVar[str] = ""
    prefix: ClassVar[str] = ""  # of its parameters in the address, where a page has several tables
    nouns: ClassVar[tuple[str, str]] = ("row", "rows")
    columns: Sequence[TableColumn] = ()
    default_sort: ClassVar[str] = ""
    search: ClassVar[tuple[str, ...]] = ()  # paths that the search box looks in
    search_label: ClassVar[str] = "Search"
    filters: Sequence[TableFilter] = ()
    actions: Sequence[TableAction] = ()
    has_file: ClassVar[bool] = True  # lists of people are exported by pages that record it

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.name:
            DataTable.names.add(cls.name)

    def __init__(
        self,
        request: HttpRequest,
        rows: QuerySet[Any] | Sequence[Any],
        *,
        filter_query: str | None = None,
        is_filtered: bool = False,
        base: str = "",
        **options: Any,
    ) -> None:
        self.request, self.base, self.options = request, base, options
        self.project: Any = options.get("project")  # its class is above this app
        self.errors: list[str] = []
        self._given_query, self._given_filter = filter_query, is_filtered
        self._display = load_display(request.user, self.name)
        self.page_size = self._display.page_size
        self.sort, column = self._sort_column()
        self.pages = self._pages(self._narrowed(rows), column)

    # What a list may say

    def load(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """The query that loads the rows of a page: related rows, annotations."""
        return rows

    def prepare(self, rows: list[Any]) -> list[Any]:
        """The rows of a page, or of a chunk of the file, with what their cells need; read for all of them in bulk."""
        return rows

    def row_key(self, row: Any) -> str:
        return str(row.pk)

    def row_url(self, row: Any) -> str:
        return ""

    def row_label(self, row: Any) -> str:
        """What the row is called by screen readers."""
        return f"{self.nouns[0]} {self.row_key(row)}"

    # Rows

    @property
    def count(self) -> int:
        return self.pages.count

    @property
    def is_more(self) -> bool:
        """Whether there are more rows than are counted."""
        return self.pages.is_more

    @property
    def is_filtered(self) -> bool:
        return self._given_filter or bool(
            self.search_text or any(field.value for field in self.filter_fields)
        )

    @property
    def is_empty(self) -> bool:
        """No rows at all, rather than none that match."""
        return not self.count and not self.is_filtered and not self.errors

    @cached_property
    def page_count(self) -> int:
        return max(1, -(-self.count // self.page_size))

    @cached_property
    def page_number(self) -> int:
        asked = self._asked("page")
        number = int(asked) if asked.isdecimal() and len(asked) < 10 else 1
        return min(max(1, number), self.page_count)

    @property
    def first(self) -> int:
        return (self.page_number - 1) * self.page_size + 1 if self.count else 0

    @property
    def last(self) -> int:
        return min(self.page_number * self.page_size, self.count)

    @cached_property
    def body(self) -> list[TableRow]:
        rows = self.prepare(self.pages.page(self.first - 1, self.last)) if self.count else []
        return [
            TableRow(
                row=row,
                key=self.row_key(row),
                url=self.row_url(row),
                label=self.row_label(row),
                cells=[TableCell(column, column.value_of(row)) for column in self.shown_columns],
            )
            for row in rows
        ]

    def file_rows(self) -> Iterator[list[Any]]:
        """A header and all rows, with the shown columns."""
        yield [column.label for column in self.shown_columns]
        for chunk in self.pages.chunks():
            for row in self.prepare(chunk):
                yield [column.file_value(row) for column in self.shown_columns]

    # What the template shows

    @property
    def id(self) -> str:
        return f"table-{self.name}"

    @property
    def noun(self) -> str:
        return self.nouns[self.count != 1]

    @property
    def max_rows(self) -> int:
        return MAX_TABLE_ROWS

    @property
    def page_sizes(self) -> tuple[int, ...]:
        return PAGE_SIZES

    @cached_property
    def shown_columns(self) -> list[TableColumn]:
        return [column for column in self.columns if self._display.shows(column)]

    @property
    def column_choices(self) -> list[tuple[TableColumn, bool]]:
        """Those that may be hidden, and whether they are shown."""
        return [(column, self._display.shows(column)) for column in self.columns if not column.is_fixed]

    @cached_property
    def headers(self) -> list[TableHeader]:
        sorted_by, is_descending = self.sort.lstrip("-"), self.sort.startswith("-")
        headers = []
        for column in self.shown_columns:
            is_current = column.name == sorted_by
            descends = not is_descending if is_current else column.begins_descending
            url = self._url(sort=f"-{column.name}" if descends else column.name, page=None)
            aria = ("descending" if is_descending else "ascending") if is_current else ""
            headers.append(TableHeader(column, url if column.is_sortable else "", aria))
        return headers

    @property
    def sort_choices(self) -> list[tuple[str, str, bool]]:
        """(value, label, whether it is the order now), for screens without a header."""
        return [
            (value, f"{column.label}, {order}", value == self.sort)
            for column in self.columns
            if column.is_sortable
            for value, order in ((column.name, "ascending"), (f"-{column.name}", "descending"))
        ]

    @property
    def previous_url(self) -> str:
        return (
            self._url(page=self.page_number - 1 if self.page_number > 2 else None)
            if self.page_number > 1
            else ""
        )

    @property
    def next_url(self) -> str:
        return self._url(page=self.page_number + 1) if self.page_number < self.page_count else ""

    @property
    def here(self) -> str:
        """The query of this page, for what is loaded again."""
        return self._url()

    @property
    def csv_url(self) -> str:
        return self._url(csv=1, page=None)

    @property
    def path(self) -> str:
        """The page's address with its filter, without a page: where one returns to when the display changed."""
        address = self._url(page=None)
        return address if self.base else f"{self.request.path}{address}"

    @property
    def clear_url(self) -> str:
        return f"{self.base}?"

    @cached_property
    def filter_fields(self) -> list[TableFilterField]:
        fields = []
        for each in self.filters:
            value = self.request.GET.get(each.name, "")
            known = [choice for choice, _ in each.choices]
            error = (
                f"{each.label} is {value!r}; choose one of the list." if value and value not in known else ""
            )
            fields.append(TableFilterField(each, value, error))
        return fields

    @property
    def search_text(self) -> str:
        return self._asked("q").strip()[:200] if self.search else ""

    @cached_property
    def visible_actions(self) -> list[TableAction]:
        membership = getattr(self.request, "membership", None)
        role = str(membership.role) if membership else ""
        return [action for action in self.actions if not action.roles or role in action.roles]

    @property
    def takes_all(self) -> bool:
        """Whether an action works on all rows that match."""
        return any(action.takes_all for action in self.visible_actions)

    @property
    def filter_query(self) -> str:
        """The filter of the address, without sort and page."""
        if self._given_query is not None:
            return self._given_query
        names = {*self._parameters("q"), *(each.name for each in self.filters)}
        kept = QueryDict(mutable=True)
        for name in self.request.GET:
            if name in names and self.request.GET[name]:
                kept[name] = self.request.GET[name]
        return kept.urlencode()

    @property
    def swap(self) -> SafeString:
        """Attributes of what replaces the table alone, where there is a script."""
        return format_html(
            'hx-boost="true" hx-target="#{0}" hx-select="#{0}" hx-swap="outerHTML show:none" hx-indicator="#{0}"',
            self.id,
        )

    # Answers

    def response(
        self, template: str, context: Mapping[str, Any] | None = None, *, status: int = 200
    ) -> HttpResponseBase:
        """The page, or the file."""
        if self.is_file_asked:
            return csv_file(self.file_rows(), f"{self._file_name()}.csv")
        answer: HttpResponse = render(
            self.request, template, {**(context or {}), "table": self}, status=status
        )
        return answer

    @property
    def is_file_asked(self) -> bool:
        return self.has_file and self._asked("csv") == "1"

    def _asked(self, name: str) -> str:
        return self.request.GET.get(self.prefix + name, "")

    def _parameters(self, *names: str) -> set[str]:
        return {self.prefix + name for name in names}

    def _file_name(self) -> str:
        return f"{self.project.slug}-{self.name}" if self.project else self.name

    def _pages(self, rows: Any, column: TableColumn | None) -> StoredRows | RowsInMemory:
        order = _order_by(self.sort, column)
        if not isinstance(rows, QuerySet):
            return RowsInMemory(rows, order)
        default = self._column_named(self.default_sort)
        is_bounded = (
            default is not None and default.is_indexed and column is not None and not column.is_indexed
        )
        pages = StoredRows(
            rows, order, self.load, _order_by(self.default_sort, default) if is_bounded else None
        )
        if pages.is_order_refused and column is not None:
            self.sort = self.default_sort
            self.errors.append(
                f"More than {MAX_TABLE_ROWS:,} {self.nouns[1]} cannot be sorted by {column.label.lower()}. "
                "Narrow the filter first."
            )
        return pages

    def _column_named(self, sort: str) -> TableColumn | None:
        return next((each for each in self.columns if each.name == sort.removeprefix("-")), None)

    def _sort_column(self) -> tuple[str, TableColumn | None]:
        """The order that is asked for, else the table's own."""
        asked = self._asked("sort")
        column = self._column_named(asked)
        if asked and column is not None and column.is_sortable:
            return asked, column
        if asked:
            self.errors.append(f"This list cannot be sorted by {asked.removeprefix('-')!r}.")
        return self.default_sort, self._column_named(self.default_sort)

    def _narrowed(self, rows: Any) -> Any:
        """An invalid filter finds nothing."""
        for field in self.filter_fields:
            if field.error:
                self.errors.append(field.error)
                return rows.none() if isinstance(rows, QuerySet) else []
            if field.value:
                rows = field.filter.narrow(rows, field.value)
        for word in self.search_text.split():
            rows = _searched(rows, self.search, word)
        return rows

    def _url(self, **changes: Any) -> str:
        """The address with other parameters; None removes one."""
        query = self.request.GET.copy()
        for name, value in {"csv": None, **changes}.items():
            if value is None:
                query.pop(self.prefix + name, None)
            else:
                query[self.prefix + name] = str(value)
        return f"{self.base}?{query.urlencode()}"

    def kept_parameters(self) -> list[tuple[str, str]]:
        """What the form that sorts has to keep: the filter."""
        own = self._parameters("sort", "page", "csv")
        return self._given_parameters(own)

    def form_parameters(self) -> list[tuple[str, str]]:
        """What the form that filters has to keep: the order, and filters that are not its own."""
        own = {*self._parameters("q", "page", "csv"), *(each.name for each in self.filters)}
        return self._given_parameters(own)

    def _given_parameters(self, without: set[str]) -> list[tuple[str, str]]:
        return [(name, str(value)) for name, value in self.request.GET.items() if name not in without]


def _order_by(sort: str, column: TableColumn | None) -> RowOrder:
    return RowOrder(column.sort if column else "", sort.startswith("-"))


def _searched(rows: Any, paths: Iterable[str], word: str) -> Any:
    if isinstance(rows, QuerySet):
        found = Q()
        for path in paths:
            found |= Q(**{f"{path}__icontains": word})
        return rows.filter(found)
    return [
        row for row in rows if any(word.lower() in str(read_path(row, path) or "").lower() for path in paths)
    ]
