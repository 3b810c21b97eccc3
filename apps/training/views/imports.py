"""Pages of imports of public reward models."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.training.import_forms import ModelImportForm
from apps.training.import_services import cancel_import, start_import
from apps.training.selectors import imports_of

_SHOWN = 10


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def model_import_create(request: ProjectRequest, project: Project) -> HttpResponse:
    form = ModelImportForm(request.POST or None, project=project)
    if form.is_valid():
        try:
            model_import = start_import(project=project, by=request.user, **form.values())
        except DomainError as error:
            form.add_domain_error(error)
        else:
            return redirect("training:model-import-detail", project.slug, model_import.pk)
    context = {"project": project, "form": form, "imports": imports_of(project)[:_SHOWN]}
    status = 400 if request.method == "POST" else 200
    return render(request, "training/model_import_create.html", context, status=status)


@require_safe
@project_view(Role.RESEARCHER)
def model_import_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The page; for htmx, the part of it that changes."""
    model_import = get_object_or_404(imports_of(project), pk=pk)
    name = "_model_import_status" if request.headers.get("HX-Request") else "model_import_detail"
    context = {"project": project, "job": model_import, "found": model_import.recognised}
    return render(request, f"training/{name}.html", context)


@require_POST
@project_view(Role.RESEARCHER)
def model_import_cancel(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    model_import = get_object_or_404(imports_of(project), pk=pk)
    cancel_import(model_import=model_import, by=request.user)
    return redirect("training:model-import-detail", project.slug, model_import.pk)
