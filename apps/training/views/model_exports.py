"""Exports of a model, on its page."""

from django.conf import settings
from django.contrib import messages
from django.http import FileResponse, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.training.model_export import ModelExportOptions
from apps.training.model_export_api import model_export_response
from apps.training.model_export_jobs import cancel_model_export, start_model_export
from apps.training.models import ModelExport
from apps.training.selectors import models_of
from workers.schema.export_forms import OUT_TYPES, forms_of

_SHOWN = 10


@require_safe
@project_view(Role.RESEARCHER)
def model_export_list(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """A fragment of the model's page: the forms it has, and the newest exports."""
    model = get_object_or_404(models_of(project), pk=pk)
    exports = list(model.exports.select_related("created_by").order_by("-created_at", "-pk")[:_SHOWN])
    for export in exports:
        export.model = model
    context = {
        "project": project,
        "model": model,
        "forms": forms_of(model.manifest),
        "out_types": OUT_TYPES,
        "exports": exports,
        "is_moving": any(not export.is_finished for export in exports),
        "days": settings.EXPORT_DAYS,
    }
    return render(request, "training/_model_exports.html", context)


@require_POST
@project_view(Role.RESEARCHER)
def model_export_start(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """format, base and outtype: as the API has them; those of other forms are not read."""
    model = get_object_or_404(models_of(project), pk=pk)
    form = request.POST.get("format", "")
    options = ModelExportOptions(
        form=form,
        base=request.POST.get("base", "").strip() if form == "adapter" else "",
        out_type=request.POST.get("outtype", "") if form == "gguf" else "",
    )
    try:
        start_model_export(model=model, options=options, by=request.user)
    except DomainError as error:
        messages.error(request, error.message)
    return redirect("training:model-detail", project.slug, pk)


@require_POST
@project_view(Role.RESEARCHER)
def model_export_cancel(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    export = _export_of(project, pk)
    try:
        cancel_model_export(export=export)
    except DomainError as error:
        messages.error(request, error.message)
    return redirect("training:model-detail", project.slug, export.model_id)


@require_safe
@project_view(Role.RESEARCHER)
def model_export_file(request: ProjectRequest, project: Project, pk: int) -> FileResponse:
    return model_export_response(_export_of(project, pk))


def _export_of(project: Project, pk: int) -> ModelExport:
    rows = ModelExport.objects.select_related("model__project")
    return get_object_or_404(rows, model__project=project, model__deleted_at=None, pk=pk)
