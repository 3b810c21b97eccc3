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
from apps.trajectories.notes import Note, collect_notes
from apps.trajectories.overview import step_overview
from apps.trajectories.pictures import IMAGE_TYPES, VIDEO_TYPES
from apps.trajectories.selectors import load_trajectories, require_trajectory
from apps.trajectories.step_cards import PAGE, step_cards
from apps.trajectories.view_permissions import viewable_attachment, viewable_trajectory
from apps.trajectories.views.parameters import parse_number
from apps.trajectories.views.trajectory_page import (
    VIEWS,
    agent_step_indices,
    json_context,
    page_context,
    step_context,
    timeline_context,
)

MediaResponse = TypeVar("MediaResponse", HttpResponse, FileResponse)
_MAX_QUERY_LENGTH = 200  # characters
_SHORT = 200  # steps up to which a page has its overview when it opens


@require_safe
@project_view(Role.RESEARCHER)
def trajectory_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """view: one of VIEWS. step: the page opens at it. find: words to search for when the page opens. list: the query of
    the list that it was opened from. show_outcome=0 hides what the environment reported."""
    trajectory = require_trajectory(project, pk)
    view = request.GET.get("view", "")
    context = page_context(request, project, trajectory) | {"view": view if view in VIEWS else VIEWS[0]}
    if context["view"] == "json":
        context |= json_context(request, project, trajectory)
    elif context["view"] == "timeline":
        context |= timeline_context(request, trajectory)
    else:
        context |= _transcript(request, trajectory, context["notes"])
    return render(request, "trajectories/trajectory_detail.html", context)


@require_safe
@project_view(Role.RESEARCHER)
def trajectory_overview(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The minimap, speakers and usage of all steps, as a fragment: of long trajectories it comes after the page."""
    trajectory = require_trajectory(project, pk)
    notes = collect_notes(pk, agent_step_indices(trajectory))
    context = step_context(request, project, trajectory)
    context["overview"] = step_overview(load_trajectories([pk])[pk].steps, notes)
    template = "_overview.html" if request.htmx else "trajectory_overview.html"  # type: ignore[attr-defined]
    return render(request, f"trajectories/{template}", context)


@require_safe
@project_view(Role.RESEARCHER)
def trajectory_find(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """Search results as a fragment."""
    trajectory = require_trajectory(project, pk)
    words = request.GET.get("find", "")[:_MAX_QUERY_LENGTH]
    found = outline.find_text(load_trajectories([pk])[pk].steps, words)
    context = step_context(request, project, trajectory)
    context |= {"words": words, "found": found, "most": outline.MAX_MATCHES}
    return render(request, "trajectories/_found.html", context)


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
    context = _card_context(request, project, trajectory) | {"cards": cards, "card": cards[0]}
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


def _transcript(request: ProjectRequest, trajectory: Trajectory, notes: list[Note]) -> dict[str, Any]:
    """The steps around the one that the page opens at; and of a short trajectory, the overview of all."""
    at = min(parse_number(request.GET.get("step", "0"), "step", "a step"), trajectory.step_count - 1)
    start = at - at % PAGE
    stop = min(start + PAGE, trajectory.step_count)
    words = request.GET.get("find", "")[:_MAX_QUERY_LENGTH]
    is_short = trajectory.step_count <= _SHORT
    steps = load_trajectories([trajectory.pk])[trajectory.pk].steps if words or is_short else ()
    return {
        "cards": step_cards(trajectory.pk, start, stop),
        "before": (0, start - 1) if start else None,
        "after": (stop, trajectory.step_count - 1) if stop < trajectory.step_count else None,
        "previous_start": max(start - PAGE, 0),
        "overview": step_overview(steps, notes) if is_short else None,
        "words": words,
        "found": outline.find_text(steps, words) if words else [],
        "most": outline.MAX_MATCHES,
    }


def _steps(request: ProjectRequest, project: Project, trajectory: Trajectory) -> dict[str, Any]:
    start = parse_number(request.GET.get("start", "0"), "start", "a step")
    stop = start + PAGE
    return _card_context(request, project, trajectory) | {
        "cards": step_cards(trajectory.pk, start, stop),
        "start": start,
        "next_start": stop if stop < trajectory.step_count and "alone" not in request.GET else None,
    }


def _card_context(request: ProjectRequest, project: Project, trajectory: Trajectory) -> dict[str, Any]:
    """On the page of the trajectory (`page`) researchers see all about a step. Elsewhere only its content, and the
    reward on request; annotators never: the outcome would bias them."""
    if not _is_researcher(request):
        return {"project": project, "trajectory": trajectory, "show_outcome": False}
    if "page" in request.GET:
        return step_context(request, project, trajectory)
    return {"project": project, "trajectory": trajectory, "show_outcome": "show_outcome" in request.GET}


def _is_researcher(request: ProjectRequest) -> bool:
    return Role(request.membership.role).includes(Role.RESEARCHER)
