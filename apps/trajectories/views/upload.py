"""Upload: a preview of what would be imported, then the import."""

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.trajectories import formats, saved, services, uploads
from apps.trajectories.card_rendering import render_step_cards
from apps.trajectories.formats.json_paths import discover_paths
from apps.trajectories.formats.mapping import NAME, guess_fields
from apps.trajectories.forms import ConfirmForm, MappingForm, MaskingForm, UploadForm
from apps.trajectories.models import Import
from apps.trajectories.selectors import newest_traces

_STEPS_SHOWN = 4


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def trajectory_upload(request: ProjectRequest, project: Project) -> HttpResponse:
    form = UploadForm(project, request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        return _preview_files(request, project, form)
    context = {"project": project, "form": form, "formats": formats.FORMATS.values()}
    context |= {"root": request.build_absolute_uri("/").rstrip("/"), "traces": newest_traces(project)}
    context["recent"] = Import.objects.filter(project=project).order_by("-pk")[:5]
    status = 422 if form.is_bound else 200
    return render(request, "trajectories/trajectory_upload.html", context, status=status)


def _preview_files(request: ProjectRequest, project: Project, form: UploadForm) -> HttpResponse:
    files, name = form.cleaned_data["file"], form.cleaned_data["format"]
    file: Any = (
        files[0] if len(files) == 1 else uploads.pack_files(project, files, form.cleaned_data["names"])
    )
    found = uploads.preview_upload(file, format=saved.format_named(project, name), project=project)
    context = {"project": project, "found": found, "filename": file.name, "confirm": None}
    if not found.documents:
        return render(request, "trajectories/upload_preview.html", context)
    file.seek(0)
    upload = uploads.SignedUpload(
        file=uploads.keep_upload(project=project, file=file),
        filename=file.name,
        format=name if found.format is None or name.startswith(saved.MAPPING) else found.format.name,
        is_all=found.is_all,
    )
    if not found.first:
        token = uploads.sign_upload(project, upload)
        paths = discover_paths(found.documents)
        guessed = {f"path_{field}": path for field, path in guess_fields(paths).items()}
        context["mapping_form"] = MappingForm(paths, initial=guessed | {"token": token})
    return _render_preview(request, context, upload)


@require_POST
@project_view(Role.RESEARCHER)
def upload_map(request: ProjectRequest, project: Project) -> HttpResponse:
    """A kept upload, read by the mapping that was chosen, which is saved where it has a name."""
    upload = uploads.signed_upload(project, request.POST.get("token", ""))
    with uploads.open_upload(upload.file) as stream:
        paths = discover_paths(uploads.preview_upload(stream, format=None, project=project).documents)
    form = MappingForm(paths, request.POST)
    chosen = form.field_mapping()
    context = {"project": project, "filename": upload.filename, "confirm": None, "mapping_form": form}
    if chosen is None:
        context["found"] = uploads.UploadPreview(is_all=upload.is_all)
        return render(request, "trajectories/upload_preview.html", context, status=422)
    if form.cleaned_data["name"]:
        kept = saved.save_mapping(
            project=project, name=form.cleaned_data["name"], mapping=chosen, by=request.user
        )
        messages.success(request, f"The mapping is saved as {kept.name}.")
    with uploads.open_upload(upload.file) as stream:
        found = uploads.preview_upload(stream, format=formats.by_mapping(chosen), project=project)
    context["found"] = found
    return _render_preview(request, context, replace(upload, format=NAME, paths=dict(chosen.paths)))


def _render_preview(
    request: ProjectRequest, context: dict[str, Any], upload: uploads.SignedUpload
) -> HttpResponse:
    found = context["found"]
    if found.first:
        token = uploads.sign_upload(context["project"], upload)
        context["confirm"] = ConfirmForm(
            initial={"token": token}, always=services.detectors_of(context["project"])
        )
        context["shown"] = [
            (trajectory, render_step_cards(trajectory, _STEPS_SHOWN)) for trajectory in found.first
        ]
    return render(request, "trajectories/upload_preview.html", context)


@require_POST
@project_view(Role.RESEARCHER)
def import_start(request: ProjectRequest, project: Project) -> HttpResponse:
    form = ConfirmForm(request.POST, always=services.detectors_of(project))
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


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.OWNER)
def masking_edit(request: ProjectRequest, project: Project) -> HttpResponse:
    """What every import of the project masks."""
    form = MaskingForm(request.POST or None, initial={"detectors": services.detectors_of(project)})
    if request.method == "POST":
        form = MaskingForm(request.POST)
        if form.is_valid():
            services.set_masking(project=project, detectors=form.cleaned_data["detectors"], by=request.user)
            messages.success(request, "Imports from now on are masked like this.")
            return redirect("trajectories:masking-edit", project.slug)
    context = {"project": project, "form": form}
    return render(request, "trajectories/masking_edit.html", context, status=422 if form.errors else 200)
