"""How a user has a table: which columns, and rows per page."""

from typing import Any

from apps.core.models import TableDisplay
from apps.core.tables.columns import TableColumn

PAGE_SIZES = (25, 50, 100, 200)
DEFAULT_PAGE_SIZE = 50
_MAX_COLUMNS = 200  # that are remembered of one table


class ChosenDisplay:
    """columns: whether a column is shown, where that differs from the table's own choice."""

    def __init__(self, columns: dict[str, bool], page_size: int) -> None:
        self.columns, self.page_size = columns, page_size

    def shows(self, column: TableColumn) -> bool:
        return column.is_fixed or self.columns.get(column.name, column.is_shown)


def load_display(user: Any, table: str) -> ChosenDisplay:
    found = TableDisplay.objects.filter(user=user, table=table).first() if user.is_authenticated else None
    return ChosenDisplay(found.columns, found.page_size) if found else ChosenDisplay({}, DEFAULT_PAGE_SIZE)


def save_columns(*, user: Any, table: str, offered: list[str], shown: list[str]) -> None:
    """offered: the columns that could be chosen; others stay as they were chosen before."""
    before = load_display(user, table).columns
    chosen = before | {name: name in shown for name in offered}
    TableDisplay.objects.update_or_create(
        user=user, table=table, defaults={"columns": dict(list(chosen.items())[-_MAX_COLUMNS:])}
    )


def save_page_size(*, user: Any, table: str, page_size: int) -> None:
    TableDisplay.objects.update_or_create(user=user, table=table, defaults={"page_size": page_size})


def reset_columns(*, user: Any, table: str) -> None:
    TableDisplay.objects.filter(user=user, table=table).update(columns={})
