"""One trajectory: its task pinned on top, its steps as cards, brought as they are scrolled to."""

from typing import Any

from django.core.files.storage import storages
from django.http import FileResponse, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError, NotFound
from apps.trajectories import attachments
from apps.trajectories.models import Attachment, Trajectory
from apps.trajectories.selectors import PAGE, step_cards, trajectory_in


@require_safe
@project_view(Role.RESEARCHER)
def trajectory_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    trajectory = trajectory_in(project, pk)
    context = _steps(request, project, trajectory)
    return render(request, "trajectories/trajectory_detail.html", context)


@require_safe
@project_view()
def trajectory_steps(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The next cards as a fragment; as a page of its own without a script."""
    trajectory = trajectory_in(project, pk)
    context = _steps(request, project, trajectory)
    template = "_steps.html" if request.htmx else "step_list.html"  # type: ignore[attr-defined]
    return render(request, f"trajectories/{template}", context)


@require_safe
@project_view()
def step_detail(request: ProjectRequest, project: Project, pk: int, index: int) -> HttpResponse:
    """One step with nothing cut."""
    trajectory = trajectory_in(project, pk)
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
    attachment = Attachment.objects.filter(project=project, sha256=sha256).first()
    if attachment is None:
        raise NotFound("There is no such attachment in this project.")
    name = attachments.file_name(project.pk, sha256)
    if not storages["artifacts"].exists(name):
        raise NotFound(
            "The file of this attachment is missing from the artifact store; `doctor` looks at the store."
        )
    is_picture = attachment.media_type in attachments.RASTER
    response = FileResponse(
        storages["artifacts"].open(name),
        as_attachment=not is_picture,
        filename=sha256[:16],
        content_type=attachment.media_type if is_picture else "application/octet-stream",
    )
    # Whatever the bytes are, they are neither sniffed nor run; the content under a digest never changes.
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response["Cache-Control"] = "private, max-age=31536000, immutable"
    return response


def _steps(request: ProjectRequest, project: Project, trajectory: Trajectory) -> dict[str, Any]:
    raw = request.GET.get("start", "0")
    if not raw.isdecimal() or len(raw) > 9:
        raise DomainError(f"start is {raw!r}; it must be the number of a step.")
    start = int(raw)
    stop = start + PAGE
    return {
        "project": project,
        "trajectory": trajectory,
        "cards": step_cards(trajectory.pk, start, stop),
        "start": start,
        "next_start": stop if stop < trajectory.step_count else None,
        "show_outcome": _may_see_outcome(request),
    }


def _may_see_outcome(request: ProjectRequest) -> bool:
    """Asked for, and by somebody whose judgement it would not spoil."""
    return "show_outcome" in request.GET and Role(request.membership.role).includes(Role.RESEARCHER)
