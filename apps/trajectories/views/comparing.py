"""Two trajectories step by step, and two agents task by task."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError, NotFound
from apps.trajectories.agents import compare
from apps.trajectories.beside import aligned, rows_of
from apps.trajectories.branching import Branch, tree_of
from apps.trajectories.models import Trajectory
from apps.trajectories.selectors import agents_of, load_trajectories, trajectory_in
from apps.trajectories.step_cards import step_cards
from apps.trajectories.views.numbers import number_of

_ROWS = 20  # brought at a time
_RUNS, _TOKENS = 64, 4_000_000  # of a task that are drawn: the newest, up to so many with so many tokens
_ENDS = 4  # steps at each end of a branch that are drawn


@require_safe
@project_view(Role.RESEARCHER)
def trajectories_diff(request: ProjectRequest, project: Project, pk: int, other: int) -> HttpResponse:
    """The page; with `start`, the rows from there on, with `start=prefix`, the steps both begin with."""
    left, right = trajectory_in(project, pk), trajectory_in(project, other)
    alignment = aligned((left.pk, right.pk))
    context: dict[str, Any] = {"project": project, "left": left, "right": right, "alignment": alignment}
    context["show_outcome"] = "show_outcome" in request.GET
    said = request.GET.get("start", "0")
    if said == "prefix":
        context |= {"trajectory": left, "cards": step_cards(left.pk, 0, alignment.prefix)}
        template = "_diff_prefix.html" if request.htmx else "step_list.html"  # type: ignore[attr-defined]
        return render(request, f"trajectories/{template}", context)
    start = number_of(said, "start", "a row")
    stop = start + _ROWS if request.htmx or not start else len(alignment.rows)  # type: ignore[attr-defined]
    context |= {
        "rows": rows_of(alignment, (left.pk, right.pk), start, stop),
        "next_start": stop if stop < len(alignment.rows) else None,
    }
    template = "_diff_rows.html" if request.htmx else "trajectories_diff.html"  # type: ignore[attr-defined]
    return render(request, f"trajectories/{template}", context)


@require_safe
@project_view(Role.RESEARCHER)
def task_tree(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The runs of a task as a tree: how roll-outs of a group are read."""
    task = project.tasks.filter(pk=pk).first()
    if task is None:
        raise NotFound(f"There is no task {pk} in this project.")
    runs: dict[int, Trajectory] = {}
    left = _TOKENS
    for one in task.trajectories.order_by("-created_at", "-pk")[:_RUNS]:
        left -= one.token_count
        if runs and left < 0:
            break
        runs[one.pk] = one
    steps = {key: one.steps for key, one in load_trajectories(runs).items()}
    context = {
        "project": project,
        "task": task,
        "trajectory": {"task": task},
        "count": task.trajectories.count(),
        "shown": len(runs),
        "tree": _drawn(tree_of(steps), runs) if steps else None,
        "show_outcome": "show_outcome" in request.GET,
    }
    return render(request, "trajectories/task_tree.html", context)


def _drawn(branch: Branch, runs: dict[int, Trajectory]) -> dict[str, Any]:
    """What a branch shows: its first steps and its last, the runs that end there, its own branches."""
    steps = branch.steps
    first, last = (steps, []) if len(steps) <= 2 * _ENDS else (steps[:_ENDS], steps[-_ENDS:])
    return {
        "runs": len(branch.runs),
        "run": branch.runs[0],
        "first": first,
        "between": len(steps) - len(first) - len(last),
        "last": last,
        "ended": [runs[key] for key in branch.ended],
        "branches": [_drawn(one, runs) for one in branch.branches],
    }


@require_safe
@project_view(Role.RESEARCHER)
def agents_compare(request: ProjectRequest, project: Project) -> HttpResponse:
    agents = agents_of(project)
    chosen = [_agent(request.GET.get(side, ""), agents) for side in ("a", "b")]
    a, b = chosen
    context = {
        "project": project,
        "agents": [(_key(one), _name(one)) for one in agents],
        "a": None if a is None else _key(a),
        "b": None if b is None else _key(b),
        "name_a": _name(a) if a else "",
        "name_b": _name(b) if b else "",
        "found": compare(project, a, b) if a and b and a != b else None,
        "same": a is not None and a == b,
    }
    return render(request, "trajectories/agents_compare.html", context)


def _agent(said: str, agents: list[tuple[str, str]]) -> tuple[str, str] | None:
    """An agent by `name` or `name@version`, as the page's own list writes it."""
    if not said:
        return None
    for one in agents:
        if _key(one) == said:
            return one
    raise DomainError(f"There is no agent {said!r} in this project.")


def _key(agent: tuple[str, str]) -> str:
    return "@".join(agent)


def _name(agent: tuple[str, str]) -> str:
    name, version = agent
    return f"{name or 'unnamed'} {version}".strip()
