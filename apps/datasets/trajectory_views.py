"""Pages of what is done with the trajectories of a filter: an export file, and their deletion."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.core.number_parsing import whole_number
from apps.datasets import export_jobs, trajectory_deletion
from apps.datasets.models import TrajectoryDeletion
from apps.trajectories.exports import FORMATS
from apps.trajectories.filter_field import FilterChoiceForm
from apps.trajectories.filter_form import filter_chips
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.filters import TrajectoryFilter, known_conditions, parse_filter

_DESCRIPTIONS = {
    "atif": "ATIF documents, which keep everything",
    "openai": "chat messages, as OpenAI's API has them",
    "original": "the imported records, byte for byte",
}


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def trajectory_export(request: ProjectRequest, project: Project) -> HttpResponse:
    """Choose a format; a worker writes the file."""
    if "filter" in request.GET:
        return _with_conditions(request)
    filter = _filter_of_address(request)
    if request.method == "POST":
        format = request.POST.get("format", "")
        export_jobs.export_trajectories(project=project, format=format, source=filter, by=request.user)
        return redirect("datasets:export-list", project.slug)
    context = _filter_context(project, filter) | {
        "count": filter_trajectories(project, filter).count(),
        "formats": [(name, _DESCRIPTIONS[name]) for name in FORMATS],
    }
    return render(request, "datasets/trajectory_export.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.OWNER)
def trajectories_delete(request: ProjectRequest, project: Project) -> HttpResponse:
    """What would be deleted, and what refers to it; deleted where its number is confirmed."""
    if "filter" in request.GET:
        return _with_conditions(request)
    filter = _filter_of_address(request)
    context = _filter_context(project, filter)
    if request.method == "POST":
        expected = whole_number(request.POST.get("confirmed", "").replace(",", "").strip())
        planned = filter_trajectories(project, filter).count()
        if expected != planned:
            context["error"] = f"Type the number of trajectories, {planned:,}, to confirm the deletion."
        else:
            job = trajectory_deletion.start_deletion(
                project=project, source=filter, expected=planned, by=request.user
            )
            return redirect("datasets:deletion-detail", project.slug, job.pk)
    context["plan"] = trajectory_deletion.plan_deletion(project, filter)
    status = 422 if "error" in context else 200
    return render(request, "datasets/trajectories_delete.html", context, status=status)


@require_safe
@project_view(Role.OWNER)
def deletion_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    job = get_object_or_404(
        TrajectoryDeletion.objects.defer("trajectory_ids", "digests"), project=project, pk=pk
    )
    template = "_deletion_state.html" if request.htmx else "deletion_detail.html"  # type: ignore[attr-defined]
    return render(request, f"datasets/{template}", {"project": project, "job": job})


@require_POST
@project_view(Role.OWNER)
def deletion_cancel(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    job = get_object_or_404(TrajectoryDeletion, project=project, pk=pk)
    trajectory_deletion.cancel_deletion(job=job, by=request.user)
    messages.info(request, "The deletion is being cancelled. What is deleted stays deleted.")
    return redirect("datasets:deletion-detail", project.slug, pk)


def _with_conditions(request: ProjectRequest) -> HttpResponse:
    """The same page, with the conditions of the one text that its form sent. Raises DomainError."""
    query = parse_filter(request.GET["filter"].strip()).query
    return redirect(f"{request.path}?{query}" if query else request.path)


def _filter_of_address(request: ProjectRequest) -> TrajectoryFilter:
    """Unknown conditions are refused: a misspelt one would mean all trajectories. Raises DomainError."""
    unknown = {name for name in request.GET if name not in known_conditions(request.GET)}
    if unknown := {name for name in unknown if request.GET[name].strip()}:
        parse_filter(dict.fromkeys(unknown, "x"))
        raise DomainError(f"There is no filter {min(unknown)!r}.")
    return parse_filter(known_conditions(request.GET))


def _filter_context(project: Project, filter: TrajectoryFilter) -> dict[str, Any]:
    return {"project": project, "query": filter.query, "chips": filter_chips(filter)} | {
        "choice": FilterChoiceForm(filter.query, project)
    }
