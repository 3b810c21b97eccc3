"""The trajectories before and after one in the list that it was opened from."""

from dataclasses import dataclass

from django.db.models import Q, QuerySet
from django.http import QueryDict

from apps.accounts.models import Project
from apps.core.tables.row_pages import RowOrder
from apps.trajectories.explorer_columns import explorer_columns
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.filters import FilterError, known_conditions, parse_filter
from apps.trajectories.models import Trajectory
from apps.trajectories.selectors import narrowed
from apps.trajectories.tables import TrajectoryTable

MAX_QUERY_LENGTH = 8000  # characters
_MAX_COUNTED = 1000
_MAX_ORDERED = 20_000  # rows of a list in another order than that of an index


@dataclass(frozen=True, slots=True)
class ListNeighbors:
    """query: of the list. previous, following: primary keys; None at an end. position: from 1, and count: of the list;
    None where the list is too long, or the trajectory is not in it."""

    query: str
    previous: int | None = None
    following: int | None = None
    position: int | None = None
    count: int | None = None


def list_neighbors(project: Project, trajectory: Trajectory, query: str) -> ListNeighbors:
    """query: of the list, as its address has it. Of a filter that is invalid, none."""
    data = QueryDict(query[:MAX_QUERY_LENGTH])
    try:
        matching = filter_trajectories(project, parse_filter(known_conditions(data)))
    except FilterError:
        return ListNeighbors(query)
    rows, count = narrowed(matching, _MAX_COUNTED)
    sort = data.get("sort") or TrajectoryTable.default_sort
    if count > _MAX_COUNTED and sort == TrajectoryTable.default_sort:
        return ListNeighbors(query, *_next_in_time(rows, trajectory))
    keys = list(_ordered(project, rows, sort).values_list("pk", flat=True)[:_MAX_ORDERED])
    if trajectory.pk not in keys:
        return ListNeighbors(query)
    place = keys.index(trajectory.pk)
    return ListNeighbors(
        query,
        previous=keys[place - 1] if place else None,
        following=keys[place + 1] if place + 1 < len(keys) else None,
        position=place + 1,
        count=len(keys) if len(keys) < _MAX_ORDERED else None,
    )


def _ordered(project: Project, rows: QuerySet[Trajectory], sort: str) -> QuerySet[Trajectory]:
    """By a column of the table, as the table does it."""
    known = (*TrajectoryTable.base_columns, *explorer_columns(project))
    columns = {column.name: column.sort for column in known if column.is_sortable}
    if sort.removeprefix("-") not in columns:
        sort = TrajectoryTable.default_sort
    order = RowOrder(columns[sort.removeprefix("-")], sort.startswith("-"))
    return rows.order_by(*order.expressions(Trajectory))


def _next_in_time(rows: QuerySet[Trajectory], trajectory: Trajectory) -> tuple[int | None, int | None]:
    """The next newer and the next older."""
    at = {"created_at": trajectory.created_at}
    newer = rows.filter(Q(created_at__gt=trajectory.created_at) | Q(**at, pk__gt=trajectory.pk))
    older = rows.filter(Q(created_at__lt=trajectory.created_at) | Q(**at, pk__lt=trajectory.pk))
    return (
        newer.order_by("created_at", "pk").values_list("pk", flat=True).first(),
        older.order_by("-created_at", "-pk").values_list("pk", flat=True).first(),
    )
