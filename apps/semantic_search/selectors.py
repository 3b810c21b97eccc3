"""Search by meaning: the passages nearest to a query, and the trajectories most like one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from django.db.models import Count, Exists, OuterRef, QuerySet

from apps.accounts.models import Project
from apps.core.errors import NotFound
from apps.semantic_search.models import TrajectoryClustering, TrajectoryPassage
from apps.semantic_search.vectors import DIMENSIONS, has_vectors, require_vectors
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.filters import FilterSource
from apps.trajectories.models import Step, Trajectory

MAX_RESULTS = 50  # trajectories
_PASSAGES = 400  # of which those of one trajectory count once
_EXCERPT = 300  # characters
_NEAREST = """
    SELECT trajectory_id, first_step, last_step, 1 - distance AS similarity FROM (
        SELECT passage.trajectory_id, passage.first_step, passage.last_step,
            passage.embedding::halfvec({size}) <=> %s::halfvec({size}) AS distance
        FROM semantic_search_trajectorypassage AS passage
        WHERE passage.project_id = %s {only}
        ORDER BY passage.embedding::halfvec({size}) <=> %s::halfvec({size})
        LIMIT {most}
    ) AS nearest
    ORDER BY distance
"""


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """similarity: cosine of the query and the passage. excerpt: the beginning of its text."""

    trajectory: Trajectory
    first_step: int
    last_step: int
    similarity: float
    excerpt: str


@dataclass(frozen=True, slots=True)
class IndexCounts:
    trajectories: int
    indexed: int

    @property
    def missing(self) -> int:
        return self.trajectories - self.indexed


def index_counts(project: Project) -> IndexCounts:
    """How many trajectories there are, and how many can be found by meaning."""
    passages = TrajectoryPassage.objects.filter(trajectory=OuterRef("pk"))
    counted = Trajectory.objects.filter(project=project).aggregate(
        every=Count("pk"), indexed=Count("pk", filter=Exists(passages))
    )
    return IndexCounts(counted["every"], counted["indexed"])


def is_indexed(trajectory: Trajectory) -> bool:
    """Whether it can be found by meaning; never without pgvector."""
    return has_vectors() and TrajectoryPassage.objects.filter(trajectory=trajectory).exists()


def unindexed(rows: QuerySet[Trajectory]) -> QuerySet[Trajectory]:
    return rows.exclude(Exists(TrajectoryPassage.objects.filter(trajectory=OuterRef("pk"))))


def nearest_passages(
    project: Project,
    vector: Sequence[float],
    *,
    source: FilterSource = None,
    other_than: Trajectory | None = None,
    most: int = MAX_RESULTS,
) -> list[FoundPassage]:
    """The nearest passage of each trajectory that passes the filter, the most similar first.

    vector: of DIMENSIONS numbers. Raises DomainError without pgvector, and for a filter that cannot be.
    """
    require_vectors()
    rows = filter_trajectories(project, source)
    if other_than is not None:
        rows = rows.exclude(pk=other_than.pk)
    only, parameters = "", ()
    if source or other_than is not None:
        wanted, parameters = rows.order_by().values("pk").query.sql_with_params()
        only = f"AND passage.trajectory_id IN ({wanted})"
    text = _vector_text(vector)
    # Only numbers and the ORM's own statement are put into the text.
    statement = _NEAREST.format(size=DIMENSIONS, only=only, most=_PASSAGES)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL hnsw.iterative_scan = strict_order")
        cursor.execute("SET LOCAL hnsw.ef_search = 200")
        cursor.execute(statement, [text, project.pk, *parameters, text])
        best: dict[int, tuple[Any, ...]] = {}
        for found in cursor.fetchall():
            best.setdefault(found[0], found)
    chosen = list(best.values())[:most]
    return _with_excerpts(project, chosen)


def similar_trajectories(trajectory: Trajectory, *, most: int = 10) -> list[FoundPassage]:
    """The trajectories with the passage that is nearest to the mean of this one's. Raises DomainError without pgvector;
    NotFound where this one is not indexed."""
    require_vectors()
    vectors = list(
        TrajectoryPassage.objects.filter(trajectory=trajectory).values_list("embedding", flat=True)
    )
    if not vectors:
        raise NotFound(f"Trajectory {trajectory.pk} is not in the index for semantic search yet.")
    mean = [sum(column) / len(vectors) for column in zip(*vectors, strict=True)]
    return nearest_passages(trajectory.project, mean, other_than=trajectory, most=most)


def _vector_text(vector: Sequence[float]) -> str:
    if len(vector) != DIMENSIONS:
        raise ValueError(f"a vector of {len(vector)} numbers; embeddings have {DIMENSIONS}.")
    return f"[{','.join(f'{number:.6g}' for number in vector)}]"


def _with_excerpts(project: Project, rows: Sequence[tuple[Any, ...]]) -> list[FoundPassage]:
    trajectories = (
        Trajectory.objects.filter(project=project).select_related("task").in_bulk([row[0] for row in rows])
    )
    found = []
    for key, first, last, similarity in rows:
        if key in trajectories:
            found.append(
                FoundPassage(trajectories[key], first, last, float(similarity), _excerpt(key, first, last))
            )
    return found


def _excerpt(trajectory: int, first: int, last: int) -> str:
    steps = Step.objects.filter(trajectory=trajectory, index__range=(first, last)).order_by("index")
    parts: list[str] = []
    for step in steps[:5]:
        parts += [part.get("text") or "" for part in step.message if isinstance(part, dict)]
        parts += [str(call.get("name", "")) for call in step.tool_calls if isinstance(call, dict)]
        for result in step.observation:
            parts += [part.get("text") or "" for part in result.get("content", ()) if isinstance(part, dict)]
        if sum(map(len, parts)) > _EXCERPT:
            break
    text = " ".join(" ".join(part[: 2 * _EXCERPT].split()) for part in parts if part)
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT].rstrip()}…"


def list_clusterings(project: Project) -> QuerySet[TrajectoryClustering]:
    return project.trajectory_clusterings.select_related("created_by").order_by("-pk")


def get_clustering(project: Project, pk: int) -> TrajectoryClustering:
    found = project.trajectory_clusterings.filter(pk=pk).first()
    if found is None:
        raise NotFound(f"There is no clustering {pk} in this project.")
    return found
