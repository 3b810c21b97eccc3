"""`client.webhooks` and `client.audit`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar

from touchstone_client.api_objects import ApiObject, ObjectReader, api_object
from touchstone_client.calls import Calls, DriverT, Request, given, list_operation, operation, read_nothing
from touchstone_client.listings import Lines, Pages


@api_object
class Webhook(ApiObject):
    """secret: signs every message; only in the reply to `create`, and not in the repr."""

    id: int
    url: str
    format: str = "standard"
    events: tuple[str, ...] = ()
    created: datetime | None = None
    secret: str | None = None

    HIDDEN: ClassVar[tuple[str, ...]] = ("secret",)


class Webhooks(Calls[DriverT]):
    """Scope `admin`."""

    @operation
    def create(
        self, url: str, *, events: Sequence[str] | None = None, format: str | None = None
    ) -> Request[Webhook]:
        """Have events sent to an address; by default all. The reply alone has the `secret`.

        format: `standard` (signed JSON) or `slack` (messages of Slack's incoming webhooks).
        """
        body = {"url": url, **given(events=None if events is None else list(events), format=format)}
        return Request("POST", self._path("webhooks"), ObjectReader(Webhook), json=body)

    @operation
    def delete(self, webhook: int) -> Request[None]:
        return Request("DELETE", self._path("webhooks", webhook), read_nothing)

    @list_operation
    def list(self, *, page_size: int | None = None) -> Pages[Webhook]:
        return Pages(self._path("webhooks"), ObjectReader(Webhook), page_size=page_size)


class AuditTrail(Calls[DriverT]):
    """Scope `admin`."""

    @list_operation
    def iter(self, *, names: bool | None = None) -> Lines[dict[str, Any]]:
        """The audit trail of the project, as `verify_audit` reads it. names: add whom the pseudonyms mean."""
        return Lines(self._path("audit"), dict, {"names": names})
