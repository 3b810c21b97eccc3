"""What a list of trajectories posts: the selected ones, or all that match its filter."""

from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse

from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.trajectories.filters import TrajectoryFilter, filter_of_ids, known_conditions, parse_filter


def posted_selection(data: QueryDict) -> TrajectoryFilter:
    """`all_matching`: the filter in `query`; else those in `selected`. Raises DomainError where nothing is."""
    if data.get("all_matching"):
        return parse_filter(data.get("query", ""))
    selected = data.getlist("selected")
    if not selected:
        raise DomainError("No trajectory is selected. Select trajectories, or all that match the filter.")
    if not all(key.isascii() and key.isdecimal() and len(key) < 19 for key in selected):
        raise DomainError("selected must be trajectory numbers.")
    return filter_of_ids(map(int, selected))


def explorer_address(project: Project, query: str) -> str:
    """The list with the filter of `query`, without what else it holds."""
    conditions = known_conditions(QueryDict(query))
    pairs = [(name, value) for name, values in conditions.items() for value in values if value]
    address = reverse("trajectories:trajectory-list", args=[project.slug])
    return f"{address}?{urlencode(pairs)}" if pairs else address
