"""One trajectory: its task pinned on top, its steps as cards, brought as they are scrolled to."""

from typing import Any, TypeVar

from django.http import FileResponse, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import NotFound
from apps.trajectories import attachments, outline
from apps.trajectories.models import Trajectory
from apps.trajectories.notes import notes_of
from apps.trajectories.patterns import PATTERNS
from apps.trajectories.pictures import CLIPS, RASTER
from apps.trajectories.selectors import load_trajectories, others_of, trajectory_in
from apps.trajectories.step_cards import PAGE, step_cards
from apps.trajectories.viewing import viewable_attachment, viewable_trajectory
from apps.trajectories.views.numbers import number_of

Answer = TypeVar("Answer", HttpResponse, FileResponse)
_WORDS = 200  # characters of what is looked for


@require_safe
@project_view(Role.RESEARCHER)
def trajectory_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """`find`: words to look for in it at once."""
    trajectory = trajectory_in(project, pk)
    loaded = load_trajectories([pk])[pk]
    steps, notes = loaded.steps, notes_of(pk, loaded.agent_steps)
    words = request.GET.get("find", "")[:_WORDS]
    context = _steps(request, project, trajectory) | {
        "chunks": [(start, min(start + PAGE, len(steps)) - 1) for start in range(PAGE, len(steps), PAGE)],
        "marks": outline.marks_of(steps, notes),
        "notes": notes,
        "rewards": outline.rewards_of(steps) if _may_see_outcome(request) else None,
        "patterns": [PATTERNS[name] for name in trajectory.patterns or () if name in PATTERNS],
        "others": others_of(trajectory),
        "words": words,
        "found": outline.find(steps, words) if words else [],
        "most": outline.MOST_FOUND,
    }
    return render(request, "trajectories/trajectory_detail.html", context)


@require_safe
@project_view(Role.RESEARCHER)
def trajectory_find(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """Where words are in it, as a fragment."""
    trajectory = trajectory_in(project, pk)
    words = request.GET.get("find", "")[:_WORDS]
    found = outline.find(load_trajectories([pk])[pk].steps, words)
    context = {"project": project, "trajectory": trajectory, "words": words, "found": found}
    return render(request, "trajectories/_found.html", context | {"most": outline.MOST_FOUND})


@require_safe
@project_view()
def trajectory_steps(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The next cards as a fragment; as a page of its own without a script."""
    trajectory = viewable_trajectory(request.membership, pk)
    context = _steps(request, project, trajectory)
    template = "_steps.html" if request.htmx else "step_list.html"  # type: ignore[attr-defined]
    return render(request, f"trajectories/{template}", context)


@require_safe
@project_view()
def step_detail(request: ProjectRequest, project: Project, pk: int, index: int) -> HttpResponse:
    """One step with nothing cut."""
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
    is_shown = attachment.media_type in (*RASTER, *CLIPS)
    response = FileResponse(
        attachments.open_attachment(attachment),
        as_attachment=not is_shown,
        filename=sha256[:16],
        content_type=attachment.media_type if is_shown else "application/octet-stream",
    )
    return _harmless(response)


@require_safe
@project_view(Role.ANNOTATOR)
def attachment_small(request: ProjectRequest, project: Project, sha256: str) -> HttpResponse:
    """A picture as pages show it; it opens in full on a click."""
    content, media_type = attachments.small_picture(viewable_attachment(request.membership, sha256))
    return _harmless(HttpResponse(content, content_type=media_type))


def _harmless(response: Answer) -> Answer:
    """Whatever the bytes are, they are neither sniffed nor run; the content under a digest never changes."""
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response["Cache-Control"] = "private, max-age=31536000, immutable"
    return response


def _steps(request: ProjectRequest, project: Project, trajectory: Trajectory) -> dict[str, Any]:
    start = number_of(request.GET.get("start", "0"), "start", "a step")
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
    """Asked for, and by somebody whose judgement it would not spoil."""
    return "show_outcome" in request.GET and Role(request.membership.role).includes(Role.RESEARCHER)
