"""Pages of LLM connections, for owners."""

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.core.forms import add_domain_error
from apps.llm import services
from apps.llm.checks import check_llm_connection
from apps.llm.forms import LLMConnectionForm
from apps.llm.models import LLMConnection
from apps.llm.selectors import list_llm_connections, monthly_costs
from apps.llm.tables import LLMConnectionTable

secret_in_form = sensitive_post_parameters("key")


@secret_in_form
@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.OWNER)
def connection_list(request: ProjectRequest, project: Project) -> HttpResponseBase:
    """POST creates a connection."""
    form = LLMConnectionForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            services.create_llm_connection(
                project=project, spec=form.spec, key=form.cleaned_data["key"], by=request.user
            )
        except DomainError as error:
            add_domain_error(form, error)
        else:
            return redirect("llm:connection-list", project.slug)
    context = {
        "project": project,
        "form": form,
        "costs": monthly_costs(project),
    }
    status = 422 if form.errors else 200
    base = reverse("llm:connection-list", args=[project.slug])
    table = LLMConnectionTable(request, list_llm_connections(project).order_by(), base=base, project=project)
    return table.response("llm/connection_list.html", context, status=status)


@secret_in_form
@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.OWNER)
def connection_edit(request: ProjectRequest, project: Project, pk: int) -> HttpResponseBase:
    llm_connection = _get_connection(project, pk)
    form = LLMConnectionForm(request.POST if request.method == "POST" else None, edited=llm_connection)
    if request.method == "POST" and form.is_valid():
        try:
            services.update_llm_connection(
                llm_connection=llm_connection, spec=form.spec, key=form.cleaned_data["key"], by=request.user
            )
        except DomainError as error:
            add_domain_error(form, error)
        else:
            return redirect("llm:connection-list", project.slug)
    context = {"project": project, "form": form, "llm_connection": llm_connection}
    status = 422 if form.errors else 200
    return render(request, "llm/connection_edit.html", context, status=status)


@require_POST
@project_view(Role.OWNER)
def connection_delete(request: ProjectRequest, project: Project, pk: int) -> HttpResponseBase:
    llm_connection = _get_connection(project, pk)
    services.delete_llm_connection(llm_connection=llm_connection, by=request.user)
    messages.success(
        request, f"{llm_connection.name} was deleted, with its API key and its cached completions."
    )
    return redirect("llm:connection-list", project.slug)


@require_POST
@project_view(Role.OWNER)
def connection_test(request: ProjectRequest, project: Project, pk: int) -> HttpResponseBase:
    llm_connection = _get_connection(project, pk)
    try:
        reply = check_llm_connection(llm_connection=llm_connection)
    except DomainError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, f"{llm_connection.name} replied: {reply}")
    return redirect("llm:connection-list", project.slug)


def _get_connection(project: Project, pk: int) -> LLMConnection:
    return get_object_or_404(LLMConnection.objects.select_related("project"), project=project, pk=pk)
