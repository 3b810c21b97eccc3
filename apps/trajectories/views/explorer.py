"""The explorer: what there is, filtered."""

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.api import paginate
from apps.trajectories.forms import FilterForm
from apps.trajectories.models import Trajectory
from apps.trajectories.selectors import filter_trajectories

_PAGE = 50


@require_safe
@project_view(Role.RESEARCHER)
def trajectory_list(request: ProjectRequest, project: Project) -> HttpResponse:
    form = FilterForm(request.GET or None, project=project)
    filters = form.cleaned_data if form.is_bound and form.is_valid() else {}
    rows = filter_trajectories(project, **filters)
    cursor = request.GET.get("cursor")
    page, next_cursor = paginate(rows.select_related("task"), cursor=cursor, limit=_PAGE)
    context = {
        "project": project,
        "form": form,
        "trajectories": page,
        "count": rows.count(),
        "next_cursor": next_cursor,
        "first": not cursor,
        "filtered": any(value not in ("", None) for value in filters.values()),
    }
    return render(request, "trajectories/trajectory_list.html", context)


@require_safe
@project_view()
def project_node(request: ProjectRequest, project: Project) -> HttpResponse:
    count = Trajectory.objects.filter(project=project).count()
    tasks = project.tasks.count()
    context = {"count": count, "unit": "trajectory" if count == 1 else "trajectories"}
    if count:
        context["text"] = f"of {tasks} task{'' if tasks == 1 else 's'}"
    if Role(request.membership.role).includes(Role.RESEARCHER):
        name, label = ("trajectory-list", "Look at them") if count else ("trajectory-upload", "Upload some")
        context |= {"url": reverse(f"trajectories:{name}", args=[project.slug]), "label": label}
    return render(request, "components/_node.html", context)
