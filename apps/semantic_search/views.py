"""Pages of search by meaning, and of clusters of trajectories."""

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.core.http.job_pages import job_fragment
from apps.core.jobs import job_queue
from apps.semantic_search.cluster_summaries import cluster_map, summarise_clusters
from apps.semantic_search.clustering import delete_clustering, start_clustering
from apps.semantic_search.forms import ClusteringForm
from apps.semantic_search.queries import LONGEST_SEARCH, search_by_meaning
from apps.semantic_search.selectors import (
    get_clustering,
    index_counts,
    is_indexed,
    list_clusterings,
    similar_trajectories,
)
from apps.semantic_search.tables import PassageTable
from apps.semantic_search.vectors import MISSING, has_vectors
from apps.trajectories.filters import filter_of_ids
from apps.trajectories.selectors import require_trajectory

_PAGE = 50
_NEIGHBOURS = 5


@require_safe
@project_view(Role.RESEARCHER)
def semantic_search(request: ProjectRequest, project: Project) -> HttpResponseBase:
    """`q`: what to search for; or `like`: a trajectory whose neighbours are wanted. `filter`: as the explorer's address
    has it."""
    query, like = request.GET.get("q", "").strip(), request.GET.get("like", "").strip()
    source, error = request.GET.get("filter", "").strip(), ""
    found: Any = []
    trajectory = None
    try:
        if like:
            trajectory = require_trajectory(project, trajectory_number(like))
            found = similar_trajectories(trajectory)
        elif query:
            found = search_by_meaning(project, query, source=source)
    except DomainError as problem:
        error = problem.message
    context = {
        "project": project,
        "query": query,
        "source": source,
        "longest": LONGEST_SEARCH,
        "trajectory": trajectory,
        "found": found,
        "error": error,
        "missing_extension": "" if has_vectors() else MISSING,
        "counts": index_counts(project),
    }
    if found:
        ids = filter_of_ids(passage.trajectory.pk for passage in found)
        table = PassageTable(request, found, filter_query=ids.query, project=project)
        return table.response("semantic_search/semantic_search.html", context)
    return render(request, "semantic_search/semantic_search.html", context, status=422 if error else 200)


@require_safe
@project_view(Role.RESEARCHER)
def trajectory_neighbours(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """A part of the trajectory's page: the nearest by meaning, where it is in the index."""
    trajectory = require_trajectory(project, pk)
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect(f"{reverse('semantic_search:semantic-search', args=[project.slug])}?like={pk}")
    found = similar_trajectories(trajectory, most=_NEIGHBOURS) if is_indexed(trajectory) else []
    context = {"project": project, "trajectory": trajectory, "found": found}
    return render(request, "semantic_search/_neighbours.html", context)


def trajectory_number(text: str) -> int:
    """Raises DomainError."""
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise DomainError(f"like is {text[:60]!r}; it must be the number of a trajectory.")
    return int(text)


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def clustering_list(request: ProjectRequest, project: Project) -> HttpResponse:
    """POST starts a clustering."""
    data = request.POST if request.method == "POST" else None
    form = ClusteringForm(data, project=project, initial={"filter": _filter_of(request)})
    if data is not None and form.is_valid():
        try:
            clustering = start_clustering(
                project=project,
                source=form.cleaned_data["filter"],
                cluster_count=form.cleaned_data["cluster_count"],
                by=request.user,
            )
            return redirect("semantic_search:clustering-detail", project.slug, clustering.pk)
        except DomainError as error:
            form.add_error("cluster_count" if error.pointer == "/cluster_count" else "filter", error.message)
    context = {
        "project": project,
        "form": form,
        "clusterings": Paginator(list_clusterings(project), _PAGE).get_page(request.GET.get("page")),
        "missing_extension": "" if has_vectors() else MISSING,
        "counts": index_counts(project),
    }
    return render(
        request, "semantic_search/clustering_list.html", context, status=422 if form.errors else 200
    )


def _filter_of(request: ProjectRequest) -> str:
    query = request.GET.copy()
    query.pop("page", None)
    return query.urlencode()


@require_safe
@project_view(Role.RESEARCHER)
def clustering_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    clustering = get_clustering(project, pk)
    context = {
        "project": project,
        "clustering": clustering,
        "clusters": summarise_clusters(clustering),
        "map": cluster_map(clustering) if clustering.result else None,
    }
    return render(request, "semantic_search/clustering_detail.html", context)


@require_safe
@project_view(Role.RESEARCHER)
def clustering_status(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The fragment that polls until the clusters are computed; the whole page is reloaded then."""
    clustering = get_clustering(project, pk)
    context = {"project": project, "clustering": clustering}
    return job_fragment(
        request, "semantic_search/_clustering_status.html", context, is_finished=clustering.is_finished
    )


@require_safe
@project_view(Role.RESEARCHER)
def cluster_members(request: ProjectRequest, project: Project, pk: int, cluster: int) -> HttpResponse:
    """The trajectories of a cluster, the most typical first."""
    clustering = get_clustering(project, pk)
    clusters = {found.place: found for found in summarise_clusters(clustering)}
    if cluster not in clusters:
        raise DomainError(f"There is no cluster {cluster} in {clustering}.", status=404)
    members = clustering.members.filter(cluster=cluster).select_related("trajectory__task")
    context = {
        "project": project,
        "clustering": clustering,
        "cluster": clusters[cluster],
        "members": Paginator(members.order_by("distance", "pk"), _PAGE).get_page(request.GET.get("page")),
    }
    return render(request, "semantic_search/cluster_members.html", context)


@require_POST
@project_view(Role.RESEARCHER)
def clustering_cancel(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    job_queue.request_cancel(get_clustering(project, pk))
    return redirect("semantic_search:clustering-detail", project.slug, pk)


@require_POST
@project_view(Role.RESEARCHER)
def clustering_delete(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    delete_clustering(clustering=get_clustering(project, pk), by=request.user)
    messages.success(request, "The clusters were deleted; their trajectories were not.")
    return redirect("semantic_search:clustering-list", project.slug)
