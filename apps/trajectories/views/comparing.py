"""Pages that compare two trajectories by step, or two agents by task."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError, NotFound
from apps.trajectories.agent_overview import summarize_agents
from apps.trajectories.agent_table import AgentTable
from apps.trajectories.agents import compare_agents
from apps.trajectories.branching import Branch, build_tree
from apps.trajectories.models import Trajectory
from apps.trajectories.selectors import list_agents, load_trajectories, require_trajectory
from apps.trajectories.side_by_side import align_stored, card_rows
from apps.trajectories.step_cards import step_cards
from apps.trajectories.views.parameters import parse_number

_ROWS = 20  # loaded at a time
_MAX_TRAJECTORIES, _MAX_TOKENS = 64, 4_000_000  # shown of a task: the newest within both limits
_ENDS = 4  # steps shown at each end of a branch
_WORTH_HIDING = 2  # steps in between that are shown too, where there are no more


@require_safe
@project_view(Role.RESEARCHER)
def trajectories_diff(request: ProjectRequest, project: Project, pk: int, other: int) -> HttpResponse:
    """The page; with `start`, the rows from that index; with `start=prefix`, the common first steps."""
    left, right = require_trajectory(project, pk), require_trajectory(project, other)
    stored_sides = align_stored((left.pk, right.pk))
    alignment = stored_sides.alignment
    context: dict[str, Any] = {"project": project, "left": left, "right": right, "alignment": alignment}
    context["show_outcome"] = "show_outcome" in request.GET
    start_parameter = request.GET.get("start", "0")
    if start_parameter == "prefix":
        context |= {"trajectory": left, "cards": step_cards(left.pk, 0, alignment.prefix)}
        template = "_diff_prefix.html" if request.htmx else "step_list.html"  # type: ignore[attr-defined]
        return render(request, f"trajectories/{template}", context)
    start = parse_number(start_parameter, "start", "a row")
    stop = start + _ROWS if request.htmx or not start else len(alignment.rows)  # type: ignore[attr-defined]
    context |= {
        "rows": card_rows(stored_sides, start, stop),
        "next_start": stop if stop < len(alignment.rows) else None,
    }
    template = "_diff_rows.html" if request.htmx else "trajectories_diff.html"  # type: ignore[attr-defined]
    return render(request, f"trajectories/{template}", context)


@require_safe
@project_view(Role.RESEARCHER)
def task_tree(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The trajectories of a task as a tree: how the samples of a group are read."""
    task = project.tasks.filter(pk=pk).first()
    if task is None:
        raise NotFound(f"There is no task {pk} in this project.")
    shown: dict[int, Trajectory] = {}
    tokens_left = _MAX_TOKENS
    for trajectory in task.trajectories.order_by("-created_at", "-pk")[:_MAX_TRAJECTORIES]:
        tokens_left -= trajectory.token_count
        if shown and tokens_left < 0:
            break
        shown[trajectory.pk] = trajectory
    steps = {key: loaded.steps for key, loaded in load_trajectories(shown).items()}
    context = {
        "project": project,
        "task": task,
        "trajectory": {"task": task},
        "count": task.trajectories.count(),
        "shown": len(shown),
        "tree": _branch_context(build_tree(steps), shown) if steps else None,
        "show_outcome": "show_outcome" in request.GET,
    }
    return render(request, "trajectories/task_tree.html", context)


def _branch_context(branch: Branch, trajectories: dict[int, Trajectory]) -> dict[str, Any]:
    """A branch for the template: its first and last steps, the trajectories that end there, its branches."""
    steps = branch.steps
    is_short = len(steps) <= 2 * _ENDS + _WORTH_HIDING
    first, last = (steps, []) if is_short else (steps[:_ENDS], steps[-_ENDS:])
    return {
        "trajectory_count": len(branch.trajectories),
        "trajectory": branch.trajectories[0],
        "first": first,
        "between": len(steps) - len(first) - len(last),
        "last": last,
        "ended": [trajectories[key] for key in branch.ended],
        "branches": [_branch_context(child, trajectories) for child in branch.branches],
    }


@require_safe
@project_view(Role.RESEARCHER)
def agents_compare(request: ProjectRequest, project: Project) -> HttpResponseBase:
    """All agents; with `a` and `b`, which the table's action sends as `selected`, two of them compared."""
    selected = request.GET.getlist("selected")
    if selected:
        if len(selected) != 2:
            raise DomainError(f"{len(selected)} agents are selected; select two to compare them.")
        address = reverse("trajectories:agents-compare", args=[project.slug])
        return redirect(f"{address}?{AgentTable.comparison_query(selected)}")
    if "a" not in request.GET and "b" not in request.GET:
        table = AgentTable(request, summarize_agents(project), project=project)
        return table.response("trajectories/agent_list.html", {"project": project})
    agents = list_agents(project)
    a, b = (_find_agent(request.GET.get(side, ""), agents) for side in ("a", "b"))
    context = {
        "project": project,
        "agents": [(_key(agent), _name(agent)) for agent in agents],
        "a": None if a is None else _key(a),
        "b": None if b is None else _key(b),
        "name_a": _name(a) if a else "",
        "name_b": _name(b) if b else "",
        "found": compare_agents(project, a, b) if a and b and a != b else None,
        "same": a is not None and a == b,
        "both_query": _query_of_both(a, b) if a and b else "",
    }
    return render(request, "trajectories/agents_compare.html", context)


def _query_of_both(a: tuple[str, str], b: tuple[str, str]) -> str:
    """The filter that finds the trajectories of both, and the option of a campaign that pairs them; empty where no
    filter is as narrow: names and versions are each any of those given."""
    (name, version), (other_name, other_version) = a, b
    if name == other_name and version and other_version:
        pairs = [("agent", name), ("version", version), ("version", other_version)]
    elif name and other_name and version == other_version:
        pairs = [("agent", name), ("agent", other_name), ("version", version)]
    elif name and other_name and name != other_name:
        pairs = [("agent", name), ("agent", other_name)]
    else:
        return ""
    return urlencode([*((key, value) for key, value in pairs if value), ("differ", "agent")])


def _find_agent(key: str, agents: list[tuple[str, str]]) -> tuple[str, str] | None:
    """The agent of `name@version`, as the page lists it."""
    if not key:
        return None
    for agent in agents:
        if _key(agent) == key:
            return agent
    raise DomainError(f"There is no agent {key!r} in this project.")


def _key(agent: tuple[str, str]) -> str:
    return "@".join(agent)


def _name(agent: tuple[str, str]) -> str:
    name, version = agent
    return f"{name or 'unnamed'} {version}".strip()
