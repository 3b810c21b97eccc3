"""Search by meaning and clusters over the JSON API."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from ninja import Field, Query, Router, Schema, Status

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.core.http.api_schemas import Cursor, JobProgress, JobStateName, Limit, StrictBody
from apps.core.http.api_scopes import needs
from apps.semantic_search.cluster_summaries import (
    ClusterSummary,
    summarise_clusterings,
    summarise_clusters,
)
from apps.semantic_search.clustering import MAX_CLUSTERS, MIN_CLUSTERS, start_clustering
from apps.semantic_search.models import TrajectoryClustering
from apps.semantic_search.queries import LONGEST_SEARCH, search_by_meaning
from apps.semantic_search.selectors import (
    MAX_RESULTS,
    FoundPassage,
    get_clustering,
    list_clusterings,
    similar_trajectories,
)
from apps.trajectories.selectors import require_trajectory

router = Router()
_TRAIN = needs(Scope.TRAIN)
_ONE = "/projects/{slug}/clusterings/{int:pk}"
_FILTER = (
    "the filter of the trajectory list as in its address: agent=desk&success=no; empty for all trajectories"
)


class FoundPassageOut(Schema):
    """Steps first_step to last_step of a trajectory. similarity: cosine, at most 1."""

    trajectory: str
    external_id: str
    task: str
    first_step: int
    last_step: int
    similarity: float
    excerpt: str


class FoundPassages(Schema):
    items: list[FoundPassageOut]


class ClusteringIn(StrictBody):
    filter: str = Field("", description=_FILTER)
    cluster_count: int | None = Field(
        None, ge=MIN_CLUSTERS, le=MAX_CLUSTERS, description="by default chosen by the silhouette"
    )


class ClusterOut(Schema):
    """filter: the filter that admits its trajectories. success: of those with a known outcome; interval: its 95 %."""

    cluster: int = Field(description="counted from 1")
    terms: list[str]
    count: int
    share: float
    success: float | None
    interval: tuple[float, float] | None
    filter: str
    typical: list[str] = Field(description="the trajectories next to its centre")


class ClusteringOut(Schema):
    id: int
    filter: str
    cluster_count: int | None
    matching: int = Field(description="trajectories that passed the filter")
    clustered: int = Field(description="of these in the clusters")
    silhouette: float | None
    state: JobStateName
    progress: JobProgress
    error: str
    clusters: list[ClusterOut] = Field(description="the largest first")
    created: datetime
    finished: datetime | None


class ClusteringPage(Schema):
    items: list[ClusteringOut]
    next: str | None


@router.get(
    "/projects/{slug}/semantic-search",
    response=FoundPassages,
    summary="Search trajectories by meaning",
    openapi_extra=_TRAIN,
)
def search_semantically(
    request: KeyRequest,
    slug: str,
    q: Annotated[str, Query(max_length=LONGEST_SEARCH, description="what to search for, in words")] = "",
    filter: Annotated[str, Query(description=_FILTER)] = "",
    limit: Annotated[int, Query(ge=1, le=MAX_RESULTS)] = 20,
) -> dict[str, Any]:
    """The nearest passage of each indexed trajectory, the most similar first."""
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    found = search_by_meaning(project, q, source=filter, most=limit)
    return {"items": [_passage_out(passage) for passage in found]}


@router.get(
    "/projects/{slug}/trajectories/{int:pk}/similar",
    response=FoundPassages,
    summary="Trajectories most like one",
    operation_id="list_similar_trajectories",
    openapi_extra=_TRAIN,
)
def similar(
    request: KeyRequest, slug: str, pk: int, limit: Annotated[int, Query(ge=1, le=MAX_RESULTS)] = 10
) -> dict[str, Any]:
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    found = similar_trajectories(require_trajectory(project, pk), most=limit)
    return {"items": [_passage_out(passage) for passage in found]}


@router.get(
    "/projects/{slug}/clusterings", response=ClusteringPage, summary="List clusterings", openapi_extra=_TRAIN
)
def list_trajectory_clusterings(
    request: KeyRequest, slug: str, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> dict[str, Any]:
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    page, following = paginate(list_clusterings(project), cursor=cursor, limit=limit)
    clusters = summarise_clusterings(page)
    items = [clustering_out(clustering, clusters[clustering.pk]) for clustering in page]
    return {"items": items, "next": following}


@router.post(
    "/projects/{slug}/clusterings",
    response={201: ClusteringOut},
    summary="Put trajectories into clusters",
    openapi_extra=_TRAIN,
)
def create_clustering(request: KeyRequest, slug: str, body: ClusteringIn) -> Status:
    """Of the indexed trajectories that pass the filter now, at most 20,000 of them."""
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    clustering = start_clustering(
        project=project, source=body.filter, cluster_count=body.cluster_count, by=request.auth
    )
    return Status(201, clustering_out(clustering))


@router.get(
    _ONE, response=ClusteringOut, operation_id="get_clustering", summary="A clustering", openapi_extra=_TRAIN
)
def read_clustering(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    return clustering_out(get_clustering(project_of_key(request.auth, slug, Scope.TRAIN), pk))


def clustering_out(
    clustering: TrajectoryClustering, clusters: Sequence[ClusterSummary] | None = None
) -> dict[str, Any]:
    """clusters: as summarise_clusters has them, where they are known."""
    clusters = summarise_clusters(clustering) if clusters is None else clusters
    return {
        "id": clustering.pk,
        "filter": clustering.query,
        "cluster_count": clustering.cluster_count,
        "matching": clustering.matching,
        "clustered": sum(cluster.count for cluster in clusters),
        "silhouette": clustering.result.get("silhouette"),
        "state": clustering.state,
        "progress": clustering.progress,
        "error": clustering.error,
        "clusters": [
            {
                "cluster": cluster.place + 1,
                "terms": cluster.terms,
                "count": cluster.count,
                "share": cluster.share,
                "success": cluster.success,
                "interval": cluster.interval,
                "filter": cluster.query,
                "typical": [str(member.trajectory_id) for member in cluster.typical],
            }
            for cluster in clusters
        ],
        "created": clustering.created_at,
        "finished": clustering.finished_at,
    }


def _passage_out(passage: FoundPassage) -> dict[str, Any]:
    return {
        "trajectory": str(passage.trajectory.pk),
        "external_id": passage.trajectory.external_id,
        "task": passage.trajectory.task.external_id,
        "first_step": passage.first_step,
        "last_step": passage.last_step,
        "similarity": passage.similarity,
        "excerpt": passage.excerpt,
    }
