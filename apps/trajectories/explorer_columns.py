"""Columns that upper apps add to the table of trajectories."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from apps.accounts.models import Project
from apps.core.registries import Registry
from apps.core.tables import TableColumn


@dataclass(frozen=True, slots=True)
class ExplorerColumn:
    """related: a one-to-one relation of the trajectory that its cells read. is_used: whether the column is shown until
    someone hides it; where not, it may be chosen."""

    column: TableColumn
    related: str
    is_used: Callable[[Project], bool]


_COLUMNS: Registry[ExplorerColumn] = Registry()


def register(column: ExplorerColumn) -> None:
    """From an AppConfig.register."""
    _COLUMNS.add(column)


def related_names() -> list[str]:
    return [each.related for each in _COLUMNS]


def explorer_columns(project: Project) -> list[TableColumn]:
    return [replace(each.column, is_shown=each.is_used(project)) for each in _COLUMNS]
