"""Notifications over the JSON API: those of the person whom the key belongs to, in the key's project."""

from datetime import datetime
from typing import Any

from ninja import Field, Query, Router, Schema

from apps.accounts.access import project_of_key
from apps.accounts.actors import person_of
from apps.accounts.auth import KeyRequest
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.core.http.api_schemas import Cursor, Limit, StrictBody
from apps.core.http.api_scopes import needs
from apps.inbox import services
from apps.inbox.models import Notification
from apps.inbox.selectors import own_notifications

router = Router()
MOST_MARKED = 1000


class NotificationOut(Schema):
    id: int
    event: str
    title: str
    detail: str
    url: str = Field(description="path of the page that shows it")
    created: datetime
    read: datetime | None


class NotificationPage(Schema):
    items: list[NotificationOut]
    next: str | None


class ReadIn(StrictBody):
    ids: list[int] | None = Field(
        None, max_length=MOST_MARKED, description="null: all of the project's notifications"
    )


class ReadOut(Schema):
    read: int


@router.get(
    "/projects/{slug}/notifications",
    response=NotificationPage,
    summary="List your notifications",
    openapi_extra=needs(),
)
def list_notifications(
    request: KeyRequest,
    slug: str,
    unread: bool = False,
    event: str = Query("", description="such as `job.failed`"),
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> dict[str, Any]:
    """Those of the person whom the key belongs to, in this project, newest first. A service account has none."""
    project = project_of_key(request.auth, slug)
    person = person_of(request.auth)
    rows = Notification.objects.none()
    if person is not None:
        rows = own_notifications(person, project=project.slug, event=event, only_unread=unread)
    page, following = paginate(rows, cursor=cursor, limit=limit, field=None)
    return {"items": [_notification_out(row) for row in page], "next": following}


@router.post(
    "/projects/{slug}/notifications/read",
    response=ReadOut,
    summary="Mark notifications as read",
    openapi_extra=needs(),
)
def read_notifications(request: KeyRequest, slug: str, body: ReadIn) -> dict[str, int]:
    """The named ones, or all of the project; how many were unread."""
    project = project_of_key(request.auth, slug)
    rows = Notification.objects.filter(project=project)
    if body.ids is not None:
        rows = rows.filter(pk__in=body.ids)
    person = person_of(request.auth)
    return {"read": 0 if person is None else services.mark_read(user=person, notifications=rows)}


def _notification_out(row: Notification) -> dict[str, Any]:
    return {
        "id": row.pk,
        "event": row.event,
        "title": row.title,
        "detail": row.detail,
        "url": row.path,
        "created": row.created_at,
        "read": row.read_at,
    }
