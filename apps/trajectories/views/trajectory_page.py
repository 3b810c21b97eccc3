"""What every view of the page of a trajectory shows: its title, facts, feedback and where one can go from it."""

import json
from typing import Any

from django.utils.http import urlencode

from apps.accounts.access import ProjectRequest
from apps.accounts.models import Project, Role
from apps.trajectories import exports, outline
from apps.trajectories.comments import comments_by_step, is_own, trajectory_comments
from apps.trajectories.list_neighbors import MAX_QUERY_LENGTH, list_neighbors
from apps.trajectories.models import Step, Trajectory
from apps.trajectories.notes import collect_notes
from apps.trajectories.patterns import PATTERNS
from apps.trajectories.risk_drawing import risk_rows
from apps.trajectories.selectors import parent_trajectory, sibling_trajectories, sub_agent_trajectories
from apps.trajectories.step_marks import step_marks
from apps.trajectories.step_usage import trajectory_usage
from apps.trajectories.timeline import trajectory_timeline
from apps.trajectories.views.parameters import parse_number

VIEWS = ("transcript", "timeline", "json")
KEPT = ("list", "show_outcome")  # parameters that links within the page keep
DOCUMENTS = {"original": "As imported", "atif": "ATIF", "openai": "Chat messages"}
_CONTENT_ID = "content-"  # of tasks whose source names none
_MAX_TITLE_LENGTH = 90  # characters
_MAX_JSON_LENGTH = 200_000  # characters on a page
_TIMELINE_ROWS = 200  # on a page
_MAX_METADATA_LENGTH = 400  # characters of one value


def step_context(request: ProjectRequest, project: Project, trajectory: Trajectory) -> dict[str, Any]:
    """What cards of steps and links to them need. step_link: up to the number of the step. fragment_query: of the
    addresses that bring more of the page."""
    kept = [(name, request.GET[name][:MAX_QUERY_LENGTH]) for name in KEPT if name in request.GET]
    query = urlencode(kept)
    return {
        "project": project,
        "trajectory": trajectory,
        "is_page": True,
        "show_outcome": request.GET.get("show_outcome") != "0",
        "step_comments": comments_by_step(trajectory),
        "step_marks": step_marks(trajectory),
        "page_query": query,
        "step_link": f"?{query}&step=" if query else "?step=",
        "fragment_query": urlencode([("page", "1"), *kept]),
    }


def page_context(request: ProjectRequest, project: Project, trajectory: Trajectory) -> dict[str, Any]:
    query = request.GET.get("list")
    context = step_context(request, project, trajectory)
    context |= comment_context(request, trajectory)
    agent_steps = agent_step_indices(trajectory)
    return context | {
        "title": trajectory_title(trajectory),
        "agent_name": f"{trajectory.agent_name or 'Unnamed agent'} {trajectory.agent_version}".strip(),
        "usage": trajectory_usage(trajectory.metadata),
        "metadata": _metadata_rows(trajectory.metadata),
        "patterns": [(name, PATTERNS[name]) for name in trajectory.patterns or () if name in PATTERNS],
        "notes": collect_notes(trajectory.pk, agent_steps),
        "risks": risk_rows(trajectory.metadata, agent_steps),
        "rewards": outline.reward_chart(_step_rewards(trajectory)) if context["show_outcome"] else None,
        "others": sibling_trajectories(trajectory),
        "parent": parent_trajectory(trajectory),
        "sub_agents": sub_agent_trajectories(trajectory),
        "neighbors": None if query is None else list_neighbors(project, trajectory, query),
    }


def comment_context(request: ProjectRequest, trajectory: Trajectory) -> dict[str, Any]:
    """comments: each with whether this member may edit and delete it. comment_step: of a new one."""
    is_owner = Role(request.membership.role).includes(Role.OWNER)
    step = request.GET.get("comment_step", "")
    return {
        "comments": [
            (comment, is_own(comment, request.user), is_own(comment, request.user) or is_owner)
            for comment in trajectory_comments(trajectory)
        ],
        "comment_step": step if step.isdecimal() else "",
    }


def trajectory_title(trajectory: Trajectory) -> str:
    """Agent and task; a task without an id in its source by the first line of its instruction."""
    task = trajectory.task.external_id
    if task.startswith(_CONTENT_ID) and (line := trajectory.task.instruction.strip().partition("\n")[0]):
        task = line
    task = task if len(task) <= _MAX_TITLE_LENGTH else f"{task[:_MAX_TITLE_LENGTH]}…"
    return f"{trajectory.agent_name or 'Unnamed agent'} {trajectory.agent_version}".strip()[
        :_MAX_TITLE_LENGTH
    ] + (f": {task}")


def agent_step_indices(trajectory: Trajectory) -> list[int]:
    rows = Step.objects.filter(trajectory=trajectory, agent_step__isnull=False).order_by("index")
    return list(rows.values_list("index", flat=True))


def json_context(request: ProjectRequest, project: Project, trajectory: Trajectory) -> dict[str, Any]:
    """document: one of DOCUMENTS, or with `step` that step as it is stored."""
    name = request.GET.get("document", "")
    name = name if name in DOCUMENTS else "original"
    if "step" in request.GET:
        index = parse_number(request.GET["step"], "step", "a step")
        text = _step_json(trajectory, index)
        name = ""
    else:
        index, text = None, document_text(project, trajectory, name)
    shown = text[:_MAX_JSON_LENGTH]
    return {
        "documents": DOCUMENTS,
        "document": name,
        "step_index": index,
        "json_text": shown,
        "json_hidden": len(text) - len(shown),
    }


def timeline_context(request: ProjectRequest, trajectory: Trajectory) -> dict[str, Any]:
    """start: the row that the page begins with."""
    first = parse_number(request.GET.get("start", "0"), "start", "a row")
    timeline = trajectory_timeline(trajectory, first, _TIMELINE_ROWS)
    following = first + _TIMELINE_ROWS
    return {
        "timeline": timeline,
        "next_row": following if timeline and following < timeline.count else None,
        "previous_row": max(first - _TIMELINE_ROWS, 0) if first else None,
    }


def document_text(project: Project, trajectory: Trajectory, name: str) -> str:
    """The document of this name, a value a line."""
    if name == "original":
        raw = exports.original_document(trajectory.pk)
        try:
            return json.dumps(json.loads(raw), ensure_ascii=False, indent=2)
        except (ValueError, RecursionError):
            return raw.decode(errors="replace")
    document = exports.export_document(project, trajectory.pk, format=name)
    return json.dumps(document, ensure_ascii=False, indent=2)


def _step_json(trajectory: Trajectory, index: int) -> str:
    names = ("source", "speaker", "message", "reasoning", "tool_calls", "observation", "features", "reward")
    row = (
        Step.objects.filter(trajectory=trajectory, index=index)
        .values("index", *names, "metrics", "extra")
        .first()
    )
    return json.dumps(row, ensure_ascii=False, indent=2) if row else "null"


def _step_rewards(trajectory: Trajectory) -> list[tuple[int, float]]:
    rows = Step.objects.filter(trajectory=trajectory, reward__isnull=False).order_by("index")
    return [(index, reward) for index, reward in rows.values_list("index", "reward") if reward is not None]


def _metadata_rows(metadata: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """Name, value as text, and whether it is cut."""
    rows = []
    for name, value in metadata.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        rows.append((name, text[:_MAX_METADATA_LENGTH], len(text) > _MAX_METADATA_LENGTH))
    return rows
