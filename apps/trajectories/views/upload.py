"""Upload: a preview of what would be imported, then the import."""

from typing import cast

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.trajectories import formats, uploads
from apps.trajectories.card_rendering import render_step_cards
from apps.trajectories.forms import ConfirmForm, UploadForm
from apps.trajectories.models import Import
from apps.trajectories.selectors import newest_traces

_STEPS_SHOWN = 4


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def trajectory_upload(request: ProjectRequest, project: Project) -> HttpResponse:
    form = UploadForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        return _preview(request, project, form)
    context = {"project": project, "form": form, "formats": formats.FORMATS.values()}
    context |= {"root": request.build_absolute_uri("/").rstrip("/"), "traces": newest_traces(project)}
    context["recent"] = Import.objects.filter(project=project).order_by("-pk")[:5]
    status = 422 if form.is_bound else 200
    return render(request, "trajectories/trajectory_upload.html", context, status=status)


def _preview(request: ProjectRequest, project: Project, form: UploadForm) -> HttpResponse:
    file, format = form.cleaned_data["file"], form.cleaned_data["format"]
    found = uploads.preview_upload(file, format=format, project=project)
    context = {"project": project, "found": found, "filename": file.name, "confirm": None}
    if found.first:
        file.seek(0)
        token = uploads.sign_upload(
            project,
            file=uploads.keep_upload(project=project, file=file),
            filename=file.name,
            format=cast(formats.Format, found.format).name,
            is_all=found.is_all,
        )
        context["confirm"] = ConfirmForm(initial={"token": token})
        context["shown"] = [
            (trajectory, render_step_cards(trajectory, _STEPS_SHOWN)) for trajectory in found.first
        ]
    return render(request, "trajectories/upload_preview.html", context)


@require_POST
@project_view(Role.RESEARCHER)
def import_start(request: ProjectRequest, project: Project) -> HttpResponse:
    form = ConfirmForm(request.POST)
    if not form.is_valid():
        raise DomainError("There is no upload to confirm. Upload a file first.")
    job = uploads.start_import(project=project, by=request.user, **form.cleaned_data)
    return redirect("trajectories:import-detail", project.slug, job.pk)


@require_safe
@project_view(Role.RESEARCHER)
def import_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    job = get_object_or_404(Import, project=project, pk=pk)
    context = {"project": project, "job": job, "rejected": job.rejected[:100]}
    template = "_import_state.html" if request.htmx else "import_detail.html"  # type: ignore[attr-defined]
    return render(request, f"trajectories/{template}", context)


@require_POST
@project_view(Role.RESEARCHER)
def import_cancel(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    job = get_object_or_404(Import, project=project, pk=pk)
    uploads.cancel_import(job=job)
    messages.info(request, "The import is being cancelled.")
    return redirect("trajectories:import-detail", project.slug, job.pk)
