"""Pages of frozen datasets."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.api import paginate
from apps.core.errors import DomainError
from apps.core.jobs import JobState
from apps.datasets.erasure import erase_judgements, erase_trajectory, planned_of
from apps.datasets.exports import DESCRIPTIONS, attachment
from apps.datasets.forms import ErasureForm, SnapshotForm
from apps.datasets.models import Snapshot
from apps.datasets.selectors import require_frozen, snapshots_of
from apps.datasets.services import cancel_snapshot, freeze_snapshot
from apps.datasets.splits import SPLITS

_PAGE = 50


@require_safe
@project_view(Role.RESEARCHER)
def snapshot_list(request: ProjectRequest, project: Project) -> HttpResponse:
    cursor = request.GET.get("cursor")
    page, next_cursor = paginate(snapshots_of(project), cursor=cursor, limit=_PAGE)
    context = {"project": project, "snapshots": page, "next_cursor": next_cursor, "first": not cursor}
    return render(request, "datasets/snapshot_list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def snapshot_create(request: ProjectRequest, project: Project) -> HttpResponse:
    form = SnapshotForm(request.POST or None, project=project, initial={"name": _last_name(project)})
    if request.method == "POST" and form.is_valid():
        try:
            snapshot = freeze_snapshot(
                project=project,
                name=form.cleaned_data["name"],
                by=request.user,
                filters=form.filters,
                test_tasks=form.test_task_ids,
                seed=form.cleaned_data["seed"],
            )
            return redirect("datasets:snapshot-detail", project.slug, snapshot.pk)
        except DomainError as error:
            field = (error.pointer or "").strip("/")
            form.add_error(field if field in form.fields else None, error.message)
    status = 422 if form.errors else 200
    return render(request, "datasets/snapshot_create.html", {"project": project, "form": form}, status=status)


@require_safe
@project_view(Role.RESEARCHER)
def snapshot_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    snapshot = get_object_or_404(snapshots_of(project), pk=pk)
    context = {
        "project": project,
        "snapshot": snapshot,
        "splits": [(name, snapshot.splits.get(name, 0), snapshot.tasks.get(name, 0)) for name in SPLITS],
        "annotators": sorted(snapshot.annotators.items(), key=lambda one: (-one[1]["records"], one[0])),
        "filters": {name: value for name, value in snapshot.filters.items() if name != "split"},
        "exports": DESCRIPTIONS,
    }
    if not _is_htmx(request):
        return render(request, "datasets/snapshot_detail.html", context)
    response = render(request, "datasets/_snapshot_state.html", context)
    if snapshot.is_finished:  # what is around the state changes too
        response["HX-Refresh"] = "true"
    return response


@require_safe
@project_view(Role.RESEARCHER)
def snapshot_export(request: ProjectRequest, project: Project, pk: int, format: str) -> HttpResponseBase:
    snapshot = require_frozen(get_object_or_404(snapshots_of(project), pk=pk))
    return attachment(snapshot, format=format, split=request.GET.get("split") or None)


@require_POST
@project_view(Role.RESEARCHER)
def snapshot_cancel(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    snapshot = get_object_or_404(snapshots_of(project), pk=pk)
    cancel_snapshot(snapshot=snapshot, by=request.user)
    messages.info(request, "The freezing is being cancelled.")
    return redirect("datasets:snapshot-detail", project.slug, snapshot.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.OWNER)
def erase(request: ProjectRequest, project: Project) -> HttpResponse:
    """Delete what somebody judged, or a run: first what would go, then, told so again, it goes."""
    form = ErasureForm(request.POST if request.method == "POST" else None, project=project)
    context: dict[str, Any] = {"project": project, "form": form}
    if request.method != "POST" or not form.is_valid():
        return render(request, "datasets/erase.html", context, status=422 if form.errors else 200)
    annotator, run = form.cleaned_data["annotator"], form.cleaned_data["run"]
    if "sure" not in request.POST:
        context["planned"] = planned_of(annotator) if annotator else planned_of(run)
        return render(request, "datasets/erase.html", context)
    if annotator:
        told = erase_judgements(annotator=annotator, by=request.user)
    else:
        told = erase_trajectory(trajectory=run, by=request.user)
    messages.success(
        request, f"{told.judgements} judgements are deleted; {len(told.snapshots)} datasets withdrawn."
    )
    return redirect("datasets:erase", project.slug)


@require_safe
@project_view()
def project_node(request: ProjectRequest, project: Project) -> HttpResponse:
    rows = Snapshot.objects.filter(project=project, state=JobState.SUCCEEDED)
    count, newest = rows.count(), rows.order_by("-created_at").first()
    context: dict[str, Any] = {"count": count, "unit": "frozen dataset" if count == 1 else "frozen datasets"}
    if newest is not None:
        context["text"] = f"newest: {newest.name}@{newest.version}, {newest.usable_pairs} usable pairs"
    if Role(request.membership.role).includes(Role.RESEARCHER):
        name, label = ("snapshot-list", "Look at them") if count else ("snapshot-create", "Freeze feedback")
        context |= {"url": reverse(f"datasets:{name}", args=[project.slug]), "label": label}
    return render(request, "components/_node.html", context)


def _is_htmx(request: HttpRequest) -> bool:
    return bool(request.htmx)  # type: ignore[attr-defined]


def _last_name(project: Project) -> str:
    newest = Snapshot.objects.filter(project=project).order_by("-created_at").first()
    return newest.name if newest else project.slug
