"""The part of a page that makes fields of a filter, for every form that asks for one."""

from typing import Any

from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.trajectories.filter_form import FilterForm, filter_chips
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.filters import FilterError, TrajectoryFilter, parse_filter


@require_safe
@project_view(Role.RESEARCHER)
def filter_builder(request: ProjectRequest, project: Project) -> HttpResponse:
    """`filter`: the text. `matches`: without the fields, only what the filter means and how many trajectories match."""
    text = request.GET.get("filter", "").strip()
    context: dict[str, Any] = {"project": project, "views": project.saved_views.all(), "text": text}
    try:
        filter = parse_filter(text)
        context |= _matches(project, filter)
    except FilterError as error:
        context["error"] = error.message
    if "matches" not in request.GET:
        form = FilterForm(QueryDict(text.removeprefix("?")), project)
        form.auto_id = "condition_%s"  # the form around it may have fields of the same names
        context["form"] = form
    return render(request, "trajectories/_filter_builder.html", context)


def _matches(project: Project, filter: TrajectoryFilter) -> dict[str, Any]:
    return {
        "count": filter_trajectories(project, filter).count(),
        "chips": filter_chips(filter),
        "query": filter.query,
    }
