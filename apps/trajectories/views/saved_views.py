"""Views of the explorer: its filter saved under a name, for everyone in the project."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.trajectories import saved_views
from apps.trajectories.selection import explorer_address


@require_POST
@project_view(Role.RESEARCHER)
def view_create(request: ProjectRequest, project: Project) -> HttpResponse:
    name, query = request.POST.get("name", ""), request.POST.get("query", "")
    view = saved_views.create_view(project=project, name=name, source=query, by=request.user)
    messages.success(request, f"View {view.name} saved for everyone in the project.")
    return redirect(explorer_address(project, view.query))


@require_POST
@project_view(Role.RESEARCHER)
def view_change(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """Rename it; with `query`, also change its filter."""
    view = saved_views.get_view(project, pk=pk)
    view = saved_views.change_view(
        view=view, name=request.POST.get("name"), source=request.POST.get("query"), by=request.user
    )
    messages.success(request, f"View {view.name} saved.")
    return redirect(explorer_address(project, view.query))


@require_POST
@project_view(Role.RESEARCHER)
def view_delete(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    view = saved_views.get_view(project, pk=pk)
    saved_views.delete_view(view=view, by=request.user)
    messages.success(request, f"View {view.name} deleted.")
    return redirect(explorer_address(project, request.POST.get("query", "")))
