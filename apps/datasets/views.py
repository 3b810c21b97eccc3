"""Pages of frozen datasets."""

from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.http import FileResponse, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError, NotFound
from apps.core.http.job_pages import job_fragment
from apps.core.jobs.job_queue import JobState
from apps.core.storage.artifacts import open_file
from apps.datasets import export_jobs
from apps.datasets.erasure import erase_judgements, erase_trajectory, plan_erasure
from apps.datasets.exports.downloads import export_response
from apps.datasets.exports.formats import formats_by_trainer
from apps.datasets.forms import DatasetVersionForm, ErasureForm, ExportForm
from apps.datasets.models import DatasetVersion, Export
from apps.datasets.selectors import list_dataset_versions, near_copies, require_frozen
from apps.datasets.services import cancel_dataset_version, freeze_dataset
from apps.datasets.split_preview import SplitPreview, preview_split
from apps.datasets.splits import SHARES, SPLITS
from apps.datasets.tables import DatasetVersionTable, ExportTable
from apps.trajectories.filters import known_conditions

_CREATE = "datasets/dataset_version_create.html"


@require_safe
@project_view(Role.RESEARCHER)
def dataset_version_list(request: ProjectRequest, project: Project) -> HttpResponseBase:
    table = DatasetVersionTable(request, DatasetVersion.objects.filter(project=project), project=project)
    return table.response("datasets/dataset_version_list.html", {"project": project})


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def dataset_version_create(request: ProjectRequest, project: Project) -> HttpResponse:
    """The form. Its preview takes a second of a large project, so the page asks for it when it is there."""
    initial = {"name": _last_name(project), "filter": _filter_of(request)}
    preview: SplitPreview | None = None
    form = DatasetVersionForm(request.POST or None, project=project, initial=initial)
    if form.is_valid():
        try:
            options = form.split_options
            if "preview" in request.POST:
                preview = preview_split(project=project, **options)
                return render(
                    request,
                    _CREATE,
                    {"project": project, "form": form, "preview": preview, "is_counted": True},
                )
            if options["shares"] is None:
                found = None if options["test_tasks"] else preview_split(project=project, **options)
                options["shares"] = found.shares if found else SHARES
            dataset_version = freeze_dataset(
                project=project, name=form.cleaned_data["name"], by=request.user, **options
            )
            return redirect("datasets:dataset-version-detail", project.slug, dataset_version.pk)
        except DomainError as error:
            field = (error.pointer or "").strip("/")
            form.add_error(field if field in form.fields else None, error.message)
    # A part of the page that is loaded alone says what is wrong in its place.
    status = 422 if form.errors and not _is_htmx(request) else 200
    return render(request, _CREATE, {"project": project, "form": form, "preview": preview}, status=status)


@require_safe
@project_view(Role.RESEARCHER)
def dataset_version_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    dataset_version = get_object_or_404(list_dataset_versions(project), pk=pk)
    context = {
        "project": project,
        "dataset_version": dataset_version,
        "splits": [
            (name, dataset_version.splits.get(name, 0), dataset_version.tasks.get(name, 0)) for name in SPLITS
        ],
        "annotators": sorted(
            dataset_version.annotators.items(), key=lambda annotator: (-annotator[1]["records"], annotator[0])
        ),
        "filters": {name: value for name, value in dataset_version.filters.items() if name != "split"},
        "near_copies": near_copies(dataset_version),
        "exports": formats_by_trainer(),
        "is_large": sum(dataset_version.splits.values()) > export_jobs.BACKGROUND_EXPORT_RECORDS,
    }
    if not _is_htmx(request):
        return render(request, "datasets/dataset_version_detail.html", context)
    return job_fragment(
        request, "datasets/_dataset_version_state.html", context, is_finished=dataset_version.is_finished
    )


@require_safe
@project_view(Role.RESEARCHER)
def dataset_version_export(
    request: ProjectRequest, project: Project, pk: int, format: str
) -> HttpResponseBase:
    dataset_version = require_frozen(get_object_or_404(list_dataset_versions(project), pk=pk))
    return export_response(
        dataset_version, format=format, split=request.GET.get("split") or None, by=request.user
    )


@require_POST
@project_view(Role.RESEARCHER)
def dataset_version_export_start(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """A large dataset version: the file is written first, by a worker."""
    dataset_version = get_object_or_404(list_dataset_versions(project), pk=pk)
    format, _, split = request.POST.get("what", "").partition("/")
    export_jobs.export_dataset_version(
        dataset_version=dataset_version, format=format, split=split, by=request.user
    )
    return redirect("datasets:export-list", project.slug)


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def export_list(request: ProjectRequest, project: Project) -> HttpResponseBase:
    """What was exported, how far it is, and a form for more."""
    initial = {"campaigns": request.GET.getlist("campaign"), "filter": request.GET.get("filter", "")}
    form = ExportForm(request.POST or None, project=project, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            export_jobs.export_feedback(
                project=project, format=form.cleaned_data["format"], filters=form.filters, by=request.user
            )
            return redirect("datasets:export-list", project.slug)
        except DomainError as error:
            form.add_error(None, error.message)
    exports = Export.objects.filter(project=project)
    context = {
        "project": project,
        "form": form,
        "is_moving": exports.filter(state__in=[JobState.QUEUED, JobState.RUNNING]).exists(),
        "days": settings.EXPORT_DAYS,
    }
    template = "datasets/_export_rows.html" if _is_poll(request) else "datasets/export_list.html"
    table = ExportTable(request, exports, project=project)
    return table.response(template, context, status=422 if form.errors else 200)


@require_POST
@project_view(Role.RESEARCHER)
def export_cancel(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    export_jobs.cancel_export(export=get_object_or_404(Export, project=project, pk=pk))
    return redirect("datasets:export-list", project.slug)


@require_safe
@project_view(Role.RESEARCHER)
def export_file(request: ProjectRequest, project: Project, pk: int) -> FileResponse:
    export = get_object_or_404(
        Export.objects.select_related("project", "dataset_version"), project=project, pk=pk
    )
    if not export.is_there:
        raise NotFound("This export file was removed or is not ready. Create the export again.")
    try:
        file = open_file(export.artifact)
    except NotFound:
        raise NotFound(
            "The file is missing from the artifact store. Run `doctor` to check the store."
        ) from None
    name = export_jobs.file_name(export)
    kind = "text/csv; charset=utf-8" if name.endswith(".csv") else "application/gzip"
    return FileResponse(file, as_attachment=True, filename=name, content_type=kind)


@require_POST
@project_view(Role.RESEARCHER)
def dataset_version_cancel(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    dataset_version = get_object_or_404(list_dataset_versions(project), pk=pk)
    cancel_dataset_version(dataset_version=dataset_version, by=request.user)
    messages.info(request, "Freezing is being cancelled.")
    return redirect("datasets:dataset-version-detail", project.slug, dataset_version.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.OWNER, in_archive=True)
def erase(request: ProjectRequest, project: Project) -> HttpResponse:
    """Delete the annotations of an annotator, or a trajectory: first a preview, then the confirmed deletion."""
    form = ErasureForm(request.POST if request.method == "POST" else None, project=project)
    context: dict[str, Any] = {"project": project, "form": form}
    if request.method != "POST" or not form.is_valid():
        return render(request, "datasets/erase.html", context, status=422 if form.errors else 200)
    annotator, run = form.cleaned_data["annotator"], form.cleaned_data["run"]
    if "sure" not in request.POST:
        context["planned"] = plan_erasure(annotator) if annotator else plan_erasure(run)
        return render(request, "datasets/erase.html", context)
    if annotator:
        summary = erase_judgements(annotator=annotator, by=request.user)
    else:
        summary = erase_trajectory(trajectory=run, by=request.user)
    messages.success(
        request,
        f"{summary.judgements} annotations deleted; {len(summary.dataset_versions)} datasets withdrawn. "
        f"Models that keep what they learnt from this data: {', '.join(summary.models) or 'none'}.",
    )
    return redirect("datasets:erase", project.slug)


@require_safe
@project_view(shows_models=True)
def project_node(request: ProjectRequest, project: Project) -> HttpResponse:
    rows = DatasetVersion.objects.filter(project=project, state=JobState.SUCCEEDED)
    count, newest = rows.count(), rows.order_by("-created_at").first()
    context: dict[str, Any] = {"count": count, "unit": "frozen dataset" if count == 1 else "frozen datasets"}
    if newest is not None:
        context["text"] = f"newest: {newest.name}@{newest.version}, {newest.usable_pairs} usable pairs"
    if Role(request.membership.role).includes(Role.RESEARCHER):
        name, label = (
            ("dataset-version-list", "View datasets")
            if count
            else ("dataset-version-create", "Freeze feedback")
        )
        context |= {"url": reverse(f"datasets:{name}", args=[project.slug]), "label": label}
    return render(request, "components/_node.html", context)


def _is_poll(request: HttpRequest) -> bool:
    """A part that is loaded again, rather than a link of the page."""
    return bool(request.htmx) and not request.htmx.boosted  # type: ignore[attr-defined]


def _is_htmx(request: HttpRequest) -> bool:
    return bool(request.htmx)  # type: ignore[attr-defined]


def _filter_of(request: HttpRequest) -> str:
    """The conditions of the address, as the trajectory list's has them."""
    return urlencode(known_conditions(request.GET), doseq=True)


def _last_name(project: Project) -> str:
    newest = DatasetVersion.objects.filter(project=project).order_by("-created_at").first()
    return newest.name if newest else project.slug
