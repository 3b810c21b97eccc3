"""The health page, for owners: checks with suggested fixes, and which processes run where."""

from dataclasses import replace
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core import health
from apps.core.processes import heartbeats

# They count the jobs and endpoints of all projects; the page of one says only whether that is well.
_ABOUT_ALL_PROJECTS = {"jobs", "rewards"}


@require_safe
@project_view(Role.OWNER)
def health_detail(request: ProjectRequest, project: Project) -> HttpResponse:
    """The checks take a second, so the page asks for them when it is there; `?checks` has all in one page."""
    if not request.htmx and "checks" not in request.GET:  # type: ignore[attr-defined]
        context: dict[str, Any] = {"project": project, "processes": heartbeats.process_statuses()}
        return render(request, "accounts/health_detail.html", context)
    findings = [_without_counts(finding) for finding in health.examine(quick=True)]
    bad = [finding for finding in findings if not finding.ok]
    context = {"project": project, "findings": findings, "bad": bad}
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "accounts/_health_checks.html", context)
    context["processes"] = heartbeats.process_statuses()
    return render(request, "accounts/health_detail.html", context)


def _without_counts(finding: health.Finding) -> health.Finding:
    if finding.name not in _ABOUT_ALL_PROJECTS:
        return finding
    return replace(
        finding, says="as it should be" if finding.ok else "needs attention; run `doctor` for details"
    )
