"""The trail of who did what."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.api import paginate


@project_view(Role.OWNER)
@require_safe
def audit_list(request: ProjectRequest, project: Project) -> HttpResponse:
    cursor = request.GET.get("cursor", "")
    events, next_cursor = paginate(project.audit_events.all(), cursor=cursor, limit=50, field="at")
    context = {"project": project, "events": events, "next_cursor": next_cursor, "first": not cursor}
    return render(request, "accounts/audit_list.html", context)
