"""The page of scores by agent version."""

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.agent_drift.references import choose_reference
from apps.agent_drift.selectors import LEAST_REFERENCE, list_agent_versions, version_scores
from apps.agent_drift.services import describe_drift
from apps.agent_drift.tables import VersionScoreTable
from apps.core.errors import DomainError


@require_safe
@project_view(Role.RESEARCHER)
def version_list(request: ProjectRequest, project: Project) -> HttpResponseBase:
    rows = version_scores(project)
    table = VersionScoreTable(request, rows, project=project)
    context = {
        "project": project,
        "drifted": [describe_drift(row) for row in rows if row.has_drifted],
        "least_reference": LEAST_REFERENCE,
        "agents": list_agent_versions(project),
    }
    return table.response("agent_drift/version_list.html", context)


@require_POST
@project_view(Role.RESEARCHER)
def reference_choose(request: ProjectRequest, project: Project) -> HttpResponse:
    """The version that later ones of an agent are compared with; with `oldest`, the oldest one."""
    agent, version = request.POST.get("agent", ""), request.POST.get("version", "")
    chosen = None if "oldest" in request.POST else version
    try:
        choose_reference(project=project, agent=agent, version=chosen, by=request.user)
        messages.success(request, "The reference version was changed.")
    except DomainError as error:
        messages.error(request, error.message)
    return redirect("agent_drift:version-list", project.slug)
