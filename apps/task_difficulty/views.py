"""The page of tasks by difficulty, and its file."""

from urllib.parse import urlencode

from django.http import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.accounts.services import record_audit
from apps.core.http.streaming import StreamedLines
from apps.task_difficulty.exports import task_lines
from apps.task_difficulty.forms import TaskDifficultyForm
from apps.task_difficulty.selectors import MOST_TASKS, estimate_tasks
from apps.task_difficulty.tables import TaskDifficultyTable
from apps.trajectories.models import Task
from workers.task_difficulty import ORDERS

_ORDER = "learnability"


@require_safe
@project_view(Role.RESEARCHER)
def task_difficulty(request: ProjectRequest, project: Project) -> HttpResponseBase:
    """`agent`: whose outcomes count. `only`: which tasks are listed."""
    form = TaskDifficultyForm(request.GET, project=project)
    context = {"project": project, "form": form, "orders": ORDERS, "most_tasks": MOST_TASKS}
    if not form.is_valid():
        return render(request, "task_difficulty/task_difficulty.html", context, status=422)
    rows = estimate_tasks(project, source=form.source, order=_ORDER, choice=form.choice)
    chosen = {name: value for name, value in form.cleaned_data.items() if value}
    table = TaskDifficultyTable(request, rows, is_filtered=bool(chosen), project=project)
    context |= {
        "query": urlencode(chosen),
        "is_narrowed": Task.objects.filter(project=project).count() > MOST_TASKS,
    }
    return table.response("task_difficulty/task_difficulty.html", context)


@require_safe
@project_view(Role.RESEARCHER)
def tasks_export(request: ProjectRequest, project: Project) -> HttpResponseBase:
    """JSON lines. `order`: of ORDERS; the rest as on the page. Raises DomainError."""
    form = TaskDifficultyForm(request.GET, project=project)
    if not form.is_valid():
        return render(
            request, "task_difficulty/task_difficulty.html", {"project": project, "form": form}, status=422
        )
    order = request.GET.get("order", _ORDER)
    lines = task_lines(project, source=form.source, order=order, choice=form.choice)
    data = {"order": order, "only": form.choice, "filter": form.source}
    record_audit(project=project, actor=request.user, verb="tasks.exported", target=order, data=data)
    response = StreamedLines(lines)
    response["Content-Disposition"] = f'attachment; filename="tasks-by-{order}.jsonl"'
    return response
