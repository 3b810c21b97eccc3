"""The state of the installation, for owners: what is wrong, how to mend it, and which processes run where."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core import health, presence


@require_safe
@project_view(Role.OWNER)
def health_detail(request: ProjectRequest, project: Project) -> HttpResponse:
    findings = list(health.examine(quick=True))
    bad = [one for one in findings if not one.ok]
    context = {"project": project, "findings": findings, "bad": bad, "processes": presence.seen()}
    return render(request, "accounts/health_detail.html", context)
