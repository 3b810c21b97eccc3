"""The owner's page of a project's data: retention, archive, deletion."""

from django.contrib import messages
from django.http import FileResponse, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.lifecycle import archive_jobs, retention, services
from apps.lifecycle.export_api import project_export_response
from apps.lifecycle.forms import DeletionForm, RetentionForm
from apps.lifecycle.models import ProjectDeletion, ProjectExport, RetentionRule, RetentionRun


@project_view(Role.OWNER)
@require_safe
def project_data(request: ProjectRequest, project: Project) -> HttpResponse:
    return _page(request, project)


@project_view(Role.OWNER)
@require_POST
def retention_save(request: ProjectRequest, project: Project) -> HttpResponse:
    """Show what the rules would delete, and save them only after that."""
    form = RetentionForm(request.POST)
    if not form.is_valid():
        return _page(request, project, form=form, status=422)
    rule = form.rule()
    rule.project = project
    if "save" not in request.POST:
        return _page(request, project, form=form, preview=retention.preview_retention(rule))
    retention.set_retention(project=project, by=request.user, **form.cleaned_data)
    retention.start_retention(project)
    messages.success(request, "The rules are saved. They are applied now, and then once a day.")
    return redirect("lifecycle:project-data", project.slug)


@project_view(Role.OWNER, in_archive=True)
@require_POST
def project_archive(request: ProjectRequest, project: Project) -> HttpResponse:
    """Archive the project, or open it again."""
    if "restore" in request.POST:
        services.restore_project(project=project, by=request.user)
        messages.success(
            request,
            "The project is open again. Endpoints, campaigns and connectors stay off until you start them.",
        )
    else:
        services.archive_project(project=project, by=request.user)
        messages.success(request, "The project is archived.")
    return redirect("lifecycle:project-data", project.slug)


@project_view(Role.OWNER, in_archive=True)
@require_POST
def project_export(request: ProjectRequest, project: Project) -> HttpResponse:
    archive_jobs.start_project_export(project=project, by=request.user)
    messages.success(request, "The archive is being written. It appears below, and in your inbox.")
    return redirect("lifecycle:project-data", project.slug)


@project_view(Role.OWNER)
@require_safe
def project_export_file(request: ProjectRequest, project: Project, pk: int) -> FileResponse:
    rows = ProjectExport.objects.select_related("project")
    return project_export_response(get_object_or_404(rows, project=project, pk=pk))


@project_view(Role.OWNER, in_archive=True)
@require_POST
def project_delete(request: ProjectRequest, project: Project) -> HttpResponse:
    form = DeletionForm(request.POST)
    if form.is_valid():
        try:
            services.request_deletion(project=project, typed_name=form.cleaned_data["name"], by=request.user)
        except DomainError as error:
            form.add_error("name", error.message)
        else:
            return redirect("lifecycle:project-data", project.slug)
    return _page(request, project, deletion_form=form, status=422)


def _page(
    request: ProjectRequest,
    project: Project,
    *,
    form: RetentionForm | None = None,
    preview: retention.RetentionPreview | None = None,
    deletion_form: DeletionForm | None = None,
    status: int = 200,
) -> HttpResponse:
    rule = RetentionRule.objects.filter(project=project).first()
    values = {name: getattr(rule, name) for name in retention.DAYS} if rule else {}
    context = {
        "project": project,
        "form": form or RetentionForm(initial=values),
        "preview": preview,
        "rule": rule,
        "last_run": RetentionRun.objects.filter(project=project).order_by("-pk").first(),
        "exports": ProjectExport.objects.filter(project=project).order_by("-pk")[:5],
        "deletion_form": deletion_form or DeletionForm(),
        "deletion": ProjectDeletion.objects.filter(project_key=project.pk).first(),
    }
    return render(request, "lifecycle/project_data.html", context, status=status)
