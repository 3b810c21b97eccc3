"""What is done with the selected trajectories, or with all that match: on to the page that does it, with the filter."""

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import NotFound
from apps.trajectories.selection import posted_selection

# Page, and what else its address has.
ACTION_PAGES = {
    "campaign": ("annotation:campaign-create", ""),
    "items": ("annotation:items-add", ""),
    "score": ("bulk:bulk-job-create", "work=endpoint"),
    "judge": ("bulk:bulk-job-create", "work=judge"),
    "dataset": ("datasets:dataset-version-create", ""),
    "export": ("datasets:trajectory-export", ""),
    "delete": ("datasets:trajectories-delete", ""),
}


def action_address(project: Project, name: str, query: str) -> str:
    """The page of an action with a filter."""
    page, more = ACTION_PAGES[name]
    parameters = "&".join(part for part in (more, query) if part)
    address = reverse(page, args=[project.slug])
    return f"{address}?{parameters}" if parameters else address


@require_POST
@project_view(Role.RESEARCHER)
def trajectory_action(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    if name not in ACTION_PAGES:
        raise NotFound(f"There is no action {name!r}; actions are {', '.join(ACTION_PAGES)}.")
    return redirect(action_address(project, name, posted_selection(request.POST).query))
