"""One trajectory: its task at the top, and its steps as cards that load while scrolling."""

from typing import Any, TypeVar

from django.http import FileResponse, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import NotFound
from apps.trajectories import attachments, outline
from apps.trajectories.models import Trajectory
from apps.trajectories.notes import collect_notes
from apps.trajectories.patterns import PATTERNS
from apps.trajectories.pictures import IMAGE_TYPES, VIDEO_TYPES
from apps.trajectories.selectors import (
    load_trajectories,
    parent_trajectory,
    require_trajectory,
    sibling_trajectories,
    sub_agent_trajectories,
)
from apps.trajectories.step_cards import PAGE, step_cards
from apps.trajectories.view_permissions import viewable_attachment, viewable_trajectory
from apps.trajectories.views.parameters import parse_number

MediaResponse = TypeVar("MediaResponse", HttpResponse, FileResponse)
_MAX_QUERY_LENGTH = 200  # characters


@require_safe
@project_view(Role.RESEARCHER)
def trajectory_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """`find`: words to search for when the page opens."""
    trajectory = require_trajectory(project, pk)
    loaded = load_trajectories([pk])[pk]
    steps, notes = loaded.steps, collect_notes(pk, loaded.agent_steps)
    words = request.GET.get("find", "")[:_MAX_QUERY_LENGTH]
    context = _steps(request, project, trajectory) | {
        "chunks": [(start, min(start + PAGE, len(steps)) - 1) for start in range(PAGE, len(steps), PAGE)],
        "marks": outline.step_marks(steps, notes),
        "notes": notes,
        "rewards": outline.reward_chart(steps) if _may_see_outcome(request) else None,
        "patterns": [PATTERNS[name] for name in trajectory.patterns or () if name in PATTERNS],
        "others": sibling_trajectories(trajectory),
        "speakers": outline.speaker_steps(steps),
        "parent": parent_trajectory(trajectory),
        "sub_agents": sub_agent_trajectories(trajectory),
        "words": words,
        "found": outline.find_text(steps, words) if words else [],
        "most": outline.MAX_MATCHES,
    }
    return render(request, "trajectories/trajectory_detail.html", context)


@require_safe
@project_view(Role.RESEARCHER)
def trajectory_find(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """Search results as a fragment."""
    trajectory = require_trajectory(project, pk)
    words = request.GET.get("find", "")[:_MAX_QUERY_LENGTH]
    found = outline.find_text(load_trajectories([pk])[pk].steps, words)
    context = {"project": project, "trajectory": trajectory, "words": words, "found": found}
    return render(request, "trajectories/_found.html", context | {"most": outline.MAX_MATCHES})


@require_safe
@project_view()
def trajectory_steps(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The next cards as a fragment, or as a page without JavaScript."""
    trajectory = viewable_trajectory(request.membership, pk)
    context = _steps(request, project, trajectory)
    template = "_steps.html" if request.htmx else "step_list.html"  # type: ignore[attr-defined]
    return render(request, f"trajectories/{template}", context)


@require_safe
@project_view()
def step_detail(request: ProjectRequest, project: Project, pk: int, index: int) -> HttpResponse:
    """One step in full."""
    trajectory = viewable_trajectory(request.membership, pk)
    cards = step_cards(trajectory.pk, index, index + 1, full=True)
    if not cards:
        raise NotFound(
            f"Trajectory {pk} has no step {index}; it has {trajectory.step_count}, counted from 0."
        )
    context = {"project": project, "trajectory": trajectory, "cards": cards, "card": cards[0]}
    context |= {"show_outcome": _may_see_outcome(request)}
    template = "_step.html" if request.htmx else "step_list.html"  # type: ignore[attr-defined]
    return render(request, f"trajectories/{template}", context)


@require_safe
@project_view()
def attachment_detail(request: ProjectRequest, project: Project, sha256: str) -> FileResponse:
    attachment = viewable_attachment(request.membership, sha256)
    is_shown = attachment.media_type in (*IMAGE_TYPES, *VIDEO_TYPES)
    response = FileResponse(
        attachments.open_attachment(attachment),
        as_attachment=not is_shown,
        filename=sha256[:16],
        content_type=attachment.media_type if is_shown else "application/octet-stream",
    )
    return _with_safe_headers(response)


@require_safe
@project_view(Role.ANNOTATOR)
def attachment_small(request: ProjectRequest, project: Project, sha256: str) -> HttpResponse:
    """A downscaled image, as pages show it; a click opens the original."""
    content, media_type = attachments.read_thumbnail(viewable_attachment(request.membership, sha256))
    return _with_safe_headers(HttpResponse(content, content_type=media_type))


def _with_safe_headers(response: MediaResponse) -> MediaResponse:
    """The response with headers that prevent sniffing and scripts; content under a digest never changes."""
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response["Cache-Control"] = "private, max-age=31536000, immutable"
    return response


def _steps(request: ProjectRequest, project: Project, trajectory: Trajectory) -> dict[str, Any]:
    start = parse_number(request.GET.get("start", "0"), "start", "a step")
    stop = start + PAGE
    return {
        "project": project,
        "trajectory": trajectory,
        "cards": step_cards(trajectory.pk, start, stop),
        "start": start,
        "next_start": stop if stop < trajectory.step_count and "alone" not in request.GET else None,
        "show_outcome": _may_see_outcome(request),
    }


def _may_see_outcome(request: ProjectRequest) -> bool:
    """Only on request, and never for annotators: the outcome would bias them."""
    return "show_outcome" in request.GET and Role(request.membership.role).includes(Role.RESEARCHER)
