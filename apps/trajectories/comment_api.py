"""Comments on trajectories over HTTP: those of one trajectory or of the project, written, edited and deleted."""

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema, Status

from apps.accounts.access import project_of_key, require_scope
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.core.http.api_schemas import Cursor, Limit
from apps.core.http.api_scopes import needs
from apps.trajectories import comments
from apps.trajectories.models import TrajectoryComment
from apps.trajectories.selectors import require_trajectory

router = Router()
MAX_STEP = 2**31 - 1


class CommentIn(Schema):
    text: str = Field(min_length=1, max_length=TrajectoryComment.MAX_LENGTH)
    step: int | None = Field(
        None, ge=0, le=MAX_STEP, description="of the trajectory, from 0; null: all of it"
    )
    sign: int | None = Field(None, ge=-1, le=1, description="1 praises, -1 blames")


class CommentOut(Schema):
    """author: a name. mentions: e-mail addresses of the members that the text names with an @."""

    id: int
    trajectory: str
    task: str
    author: str
    text: str
    step: int | None
    sign: int | None
    mentions: list[str]
    created: datetime
    edited: datetime | None


class CommentPage(Schema):
    items: list[CommentOut]
    next: str | None


@router.get(
    "/projects/{slug}/trajectory-comments",
    response=CommentPage,
    summary="List comments on trajectories",
    openapi_extra=needs(Scope.FEEDBACK_READ),
)
def list_trajectory_comments(
    request: KeyRequest, slug: str, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> dict[str, Any]:
    """Those written on the pages of trajectories, newest first. Comments of campaigns are feedback."""
    project = project_of_key(request.auth, slug, Scope.FEEDBACK_READ)
    page, following = paginate(comments.list_comments(project), cursor=cursor, limit=limit)
    return {"items": [_comment_out(row) for row in page], "next": following}


@router.get(
    "/trajectories/{int:pk}/comments",
    response=CommentPage,
    summary="Comments on a trajectory",
    openapi_extra=needs(Scope.FEEDBACK_READ),
)
def get_trajectory_comments(
    request: KeyRequest, pk: int, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> dict[str, Any]:
    """Newest first."""
    require_scope(request.auth, Scope.FEEDBACK_READ)
    trajectory = require_trajectory(request.auth.project, pk)
    rows = comments.list_comments(trajectory.project).filter(trajectory=trajectory)
    page, following = paginate(rows, cursor=cursor, limit=limit)
    return {"items": [_comment_out(row) for row in page], "next": following}


@router.post(
    "/trajectories/{int:pk}/comments",
    response={201: CommentOut},
    summary="Comment on a trajectory",
    openapi_extra=needs(Scope.FEEDBACK_WRITE),
)
def create_trajectory_comment(request: KeyRequest, pk: int, body: CommentIn) -> Status[dict[str, Any]]:
    """The author is the owner of the key."""
    require_scope(request.auth, Scope.FEEDBACK_WRITE)
    trajectory = require_trajectory(request.auth.project, pk)
    row = comments.create_comment(trajectory=trajectory, by=request.auth, **_values(body))
    return Status(201, _comment_out(row))


@router.put(
    "/trajectories/{int:pk}/comments/{int:comment}",
    response=CommentOut,
    summary="Edit a comment on a trajectory",
    openapi_extra=needs(Scope.FEEDBACK_WRITE),
)
def edit_trajectory_comment(request: KeyRequest, pk: int, comment: int, body: CommentIn) -> dict[str, Any]:
    """Own comments only: those of the owner of the key. All of the comment is replaced."""
    row = _comment_of_key(request, pk, comment)
    return _comment_out(comments.edit_comment(comment=row, by=request.auth, **_values(body)))


@router.delete(
    "/trajectories/{int:pk}/comments/{int:comment}",
    response={204: None},
    summary="Delete a comment on a trajectory",
    openapi_extra=needs(Scope.FEEDBACK_WRITE),
)
def delete_trajectory_comment(request: KeyRequest, pk: int, comment: int) -> Status[None]:
    """Own comments only: those of the owner of the key."""
    comments.delete_comment(comment=_comment_of_key(request, pk, comment), by=request.auth)
    return Status(204, None)


def _comment_of_key(request: KeyRequest, pk: int, comment: int) -> TrajectoryComment:
    require_scope(request.auth, Scope.FEEDBACK_WRITE)
    return comments.get_comment(require_trajectory(request.auth.project, pk), comment)


def _values(body: CommentIn) -> dict[str, Any]:
    return {"text": body.text, "step": body.step, "sign": body.sign or None}


def _comment_out(row: TrajectoryComment) -> dict[str, Any]:
    return {
        "id": row.pk,
        "trajectory": str(row.trajectory_id),
        "task": row.trajectory.task.external_id,
        "author": row.author_name,
        "text": row.text,
        "step": row.step,
        "sign": row.sign,
        "mentions": [user.email for user in row.mentions.all()],
        "created": row.created_at,
        "edited": row.edited_at,
    }
