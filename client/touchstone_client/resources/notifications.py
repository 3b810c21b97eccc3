"""`client.notifications`: the inbox of the person whom the key belongs to."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from touchstone_client.api_objects import ApiObject, ObjectReader, api_object
from touchstone_client.calls import Calls, DriverT, Request, list_operation, operation
from touchstone_client.listings import Pages


@api_object
class Notification(ApiObject):
    """url: path of the page that shows it. read: when it was marked as read."""

    id: int
    event: str = ""
    title: str = ""
    detail: str = ""
    url: str = ""
    created: datetime | None = None
    read: datetime | None = None

    def __str__(self) -> str:
        return self.title


def _read_count(reply: Any) -> int:
    return int(reply["read"])


class Notifications(Calls[DriverT]):
    """Any scope: those of the person whom the key belongs to, in its project. A service account has none."""

    @list_operation
    def list(
        self, *, unread: bool | None = None, event: str | None = None, page_size: int | None = None
    ) -> Pages[Notification]:
        """Newest first. event: such as `job.failed`."""
        return Pages(
            self._path("notifications"),
            ObjectReader(Notification),
            {"unread": unread, "event": event},
            page_size=page_size,
        )

    @operation
    def mark_read(self, notifications: Sequence[int | Notification] | None = None) -> Request[int]:
        """Mark notifications as read, by default all of the project; how many were unread."""
        ids = None
        if notifications is not None:
            ids = [each.id if isinstance(each, Notification) else each for each in notifications]
        return Request("POST", self._path("notifications", "read"), _read_count, json={"ids": ids})
