"""Marks of demonstrations over the JSON API: those of a trajectory, made and taken back by people."""

from typing import Any

from ninja import Field, Router, Schema

from apps.accounts.access import require_scope
from apps.accounts.actors import person_of
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope
from apps.annotation.demonstrations import demonstration_marks
from apps.annotation.services import mark_demonstration, unmark_demonstration
from apps.core.http.api_scopes import needs
from apps.trajectories.models import Trajectory
from apps.trajectories.selectors import require_trajectory

router = Router()
_MARK = "/trajectories/{int:pk}/demonstration/mark"
_DECISION = needs(Scope.FEEDBACK_WRITE, person=True)


class DemonstrationMarksOut(Schema):
    trajectory: str
    marked: bool = Field(description="whether the owner of the key marked it as a demonstration")
    others: list[str] = Field(description="names of all others who call it a demonstration")


@router.get(
    "/trajectories/{int:pk}/demonstration",
    response=DemonstrationMarksOut,
    summary="Who calls a trajectory a demonstration",
    openapi_extra=needs(Scope.FEEDBACK_READ),
)
def get_demonstration(request: KeyRequest, pk: int) -> dict[str, Any]:
    """The filter `demonstration=yes` finds all trajectories that anyone calls one."""
    require_scope(request.auth, Scope.FEEDBACK_READ)
    return _marks_out(request, require_trajectory(request.auth.project, pk))


@router.put(
    _MARK,
    response=DemonstrationMarksOut,
    summary="Mark a trajectory as a demonstration",
    openapi_extra=_DECISION,
)
def put_demonstration_mark(request: KeyRequest, pk: int) -> dict[str, Any]:
    """In the name of the member to whom the key belongs, as on its page; again changes nothing."""
    require_scope(request.auth, Scope.FEEDBACK_WRITE)
    trajectory = require_trajectory(request.auth.project, pk)
    mark_demonstration(trajectory=trajectory, by=request.auth)
    return _marks_out(request, trajectory)


@router.delete(
    _MARK,
    response=DemonstrationMarksOut,
    summary="Take back a mark as a demonstration",
    openapi_extra=_DECISION,
)
def delete_demonstration_mark(request: KeyRequest, pk: int) -> dict[str, Any]:
    """The own mark only: what others marked, and answers in campaigns, stay."""
    require_scope(request.auth, Scope.FEEDBACK_WRITE)
    trajectory = require_trajectory(request.auth.project, pk)
    unmark_demonstration(trajectory=trajectory, by=request.auth)
    return _marks_out(request, trajectory)


def _marks_out(request: KeyRequest, trajectory: Trajectory) -> dict[str, Any]:
    marks = demonstration_marks(trajectory, person_of(request.auth))
    return {"trajectory": str(trajectory.pk), "marked": marks.is_own, "others": marks.others}
