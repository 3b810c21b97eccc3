"""The trajectory explorer: filters, search, bulk tagging and saved filters."""

from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.core.http.api import paginate
from apps.trajectories import saved, services
from apps.trajectories.forms import FilterForm, SaveFilterForm, TagForm
from apps.trajectories.models import Trajectory
from apps.trajectories.patterns import PATTERNS
from apps.trajectories.search_text import first_term
from apps.trajectories.selectors import filter_trajectories, narrowed, unindexed_trajectories

PAGE = 50
MAX_COUNTED = 1_000  # trajectories; beyond, only "more than" is shown
_SHOWN = ("text", "task", "agent", "success", "pattern")  # filters that are always visible


@require_safe
@project_view(Role.RESEARCHER)
def trajectory_list(request: ProjectRequest, project: Project) -> HttpResponse:
    form = FilterForm(request.GET or None, project=project)
    filters = _filter_values(form)
    rows = filter_trajectories(project, **filters)
    cursor = request.GET.get("cursor")
    found, count = narrowed(rows, MAX_COUNTED)
    page, next_cursor = paginate(found.select_related("task"), cursor=cursor, limit=PAGE)
    query = _query(request.GET)
    context = {
        "project": project,
        "form": form,
        "shown": [form[name] for name in _SHOWN],
        "more": [field for field in form if field.name not in _SHOWN],
        "more_open": any(name not in _SHOWN for name in filters) or bool(set(form.errors) - set(_SHOWN)),
        "trajectories": [
            (row, [PATTERNS[name] for name in row.patterns or () if name in PATTERNS]) for row in page
        ],
        "count": min(count, MAX_COUNTED),
        "is_more": count > MAX_COUNTED,
        "next_cursor": next_cursor,
        "first": not cursor,
        "filtered": bool(filters),
        "query": query,
        "find": urlencode({"find": first_term(filters["text"])}) if "text" in filters else "",
        "saved": project.saved_filters.all(),
        "save_form": SaveFilterForm(initial={"query": query}, auto_id="save_%s"),
        "tag_form": TagForm(initial={"query": query}, auto_id="tag_%s"),
        "unindexed": unindexed_trajectories(project).exists(),
    }
    return render(request, "trajectories/trajectory_list.html", context)


@require_POST
@project_view(Role.RESEARCHER)
def filter_save(request: ProjectRequest, project: Project) -> HttpResponse:
    form = SaveFilterForm(request.POST)
    if not form.is_valid():
        raise DomainError("The name of a filter needs 1 to 60 characters.")
    query = _query(QueryDict(form.cleaned_data["query"]))
    kept = saved.save_filter(project=project, name=form.cleaned_data["name"], query=query, by=request.user)
    messages.success(request, f"Filter {kept.name} saved.")
    return redirect(f"{_explorer(project)}?{kept.query}")


@require_POST
@project_view(Role.RESEARCHER)
def filter_delete(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    deleted = saved.delete_filter(project=project, pk=pk)
    messages.success(request, f"Filter {deleted.name} deleted.")
    return redirect(_explorer(project))


@require_POST
@project_view(Role.RESEARCHER)
def trajectories_tag(request: ProjectRequest, project: Project) -> HttpResponse:
    """Tag the selected trajectories, or all that match the filter."""
    form = TagForm(request.POST)
    if not form.is_valid():
        raise DomainError("A tag needs 1 to 60 characters.")
    values = form.cleaned_data
    tag, remove = " ".join(values["tag"].split()), values["remove"]
    rows = _selected_trajectories(request, project, values)
    changed = services.tag_trajectories(project=project, rows=rows, tag=tag, remove=remove, by=request.user)
    done = f"no longer tagged {tag}" if remove else f"tagged {tag}"
    if changed:
        messages.success(
            request, f"{changed:,} {'trajectory is' if changed == 1 else 'trajectories are'} {done}."
        )
    else:
        messages.info(
            request,
            "No selected trajectory has this tag."
            if remove
            else "All selected trajectories already have this tag.",
        )
    query = _query(QueryDict(values["query"]))
    return redirect(f"{_explorer(project)}?{query}" if query else _explorer(project))


@require_safe
@project_view(Role.RESEARCHER)
def project_node(request: ProjectRequest, project: Project) -> HttpResponse:
    count = Trajectory.objects.filter(project=project).count()
    tasks = project.tasks.count()
    context = {"count": count, "unit": "trajectory" if count == 1 else "trajectories"}
    if count:
        context["text"] = f"of {tasks} task{'' if tasks == 1 else 's'}"
    name, label = (
        ("trajectory-list", "View trajectories") if count else ("trajectory-upload", "Upload trajectories")
    )
    context |= {"url": reverse(f"trajectories:{name}", args=[project.slug]), "label": label}
    return render(request, "components/_node.html", context)


def _filter_values(form: FilterForm) -> dict[str, Any]:
    """The values to filter by. Invalid fields of a form are ignored."""
    if not form.is_bound:
        return {}
    form.is_valid()
    return {name: value for name, value in form.cleaned_data.items() if value not in ("", None)}


def _query(data: QueryDict) -> str:
    """The filters of a query string, without other parameters."""
    return urlencode([(name, str(data[name])) for name in FilterForm.base_fields if data.get(name)])


def _selected_trajectories(
    request: ProjectRequest, project: Project, values: dict[str, Any]
) -> QuerySet[Trajectory]:
    if values["every"]:
        form = FilterForm(QueryDict(values["query"]), project=project)
        if not form.is_valid():
            raise DomainError("The filter is invalid. Fix it before tagging all matches.")
        return filter_trajectories(project, **_filter_values(form))
    chosen = request.POST.getlist("chosen")
    if not chosen:
        raise DomainError("No trajectory is selected. Select trajectories, or all that match the filter.")
    if not all(key.isdecimal() and len(key) < 19 for key in chosen):
        raise DomainError("chosen must be trajectory numbers.")
    return Trajectory.objects.filter(project=project, pk__in=chosen)


def _explorer(project: Project) -> str:
    return reverse("trajectories:trajectory-list", args=[project.slug])
