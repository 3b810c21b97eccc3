"""A revision that is kept warm, and its promotion."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.core.number_parsing import whole_number
from apps.rewards import services
from apps.rewards.selectors import endpoint_of, revision_of


@require_POST
@project_view(Role.RESEARCHER)
def standby_set(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    """`revision`: its number; without it, no revision stands by."""
    endpoint = endpoint_of(project, name)
    number = whole_number(request.POST.get("revision", ""))
    try:
        revision = None if number is None else revision_of(endpoint, number)
        services.set_standby(endpoint=endpoint, revision=revision, by=request.user)
    except DomainError as error:
        how = " Deploy the model again as a standby to state it." if error.pointer == "/reason" else ""
        messages.error(request, f"{error.message}{how}")
    else:
        said = "No revision stands by" if number is None else f"Revision {number} stands by"
        messages.success(request, f"{said} on {name}.")
    return redirect("rewards:endpoint-detail", project.slug, name)


@require_POST
@project_view(Role.RESEARCHER)
def standby_promote(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    endpoint = endpoint_of(project, name)
    try:
        revision = services.promote_standby(endpoint=endpoint, by=request.user)
    except DomainError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, f"Revision {revision.number} of {name} is active.")
    return redirect("rewards:endpoint-detail", project.slug, name)
