"""A query in words, answered by the passages that are nearest in meaning."""

from touchstone_client import RewardServiceError

from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.rewards import remote
from apps.semantic_search.selectors import MAX_RESULTS, FoundPassage, nearest_passages
from apps.semantic_search.vectors import require_vectors
from apps.trajectories.filters import FilterSource

LONGEST_SEARCH = 1000  # characters


def search_by_meaning(
    project: Project, query: str, *, source: FilterSource = None, most: int = MAX_RESULTS
) -> list[FoundPassage]:
    """The query is embedded by the reward service. Raises DomainError, of status 409 where that cannot be reached."""
    query = query.strip()
    if not 1 <= len(query) <= LONGEST_SEARCH:
        raise DomainError(
            f"The query has {len(query):,} characters; write 1 to {LONGEST_SEARCH:,}.", pointer="/q"
        )
    require_vectors()
    try:
        (vector,) = remote.embed_queries(project, [query])
    except RewardServiceError as error:
        raise DomainError(
            f"The query could not be embedded: the reward service cannot be reached ({error}). Start `manage.py "
            "rewards`, or try again.",
            status=409,
        ) from error
    return nearest_passages(project, vector, source=source, most=most)
