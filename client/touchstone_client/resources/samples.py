"""`client.samples` and `client.alerts`: what an endpoint recorded of its requests, and what its monitor noticed."""

from datetime import datetime
from typing import Any, ClassVar

from touchstone_client.api_objects import ApiObject, ObjectReader, api_object
from touchstone_client.calls import Calls, DriverT, Request, list_operation, operation
from touchstone_client.listings import Pages
from touchstone_client.resources.endpoints import Endpoint


@api_object
class SampledRequest(ApiObject):
    """A recorded request. item, result: what was sent and answered, of `get`."""

    id: int
    version: int | None = None
    caller: str | None = None
    run: str | None = None
    policy_version: str | None = None
    reward: float | None = None
    flags: tuple[str, ...] = ()
    tokens: int | None = None
    steps: int | None = None
    at: datetime | None = None
    item: Any = None
    result: Any = None

    HIDDEN: ClassVar[tuple[str, ...]] = ("item", "result")


@api_object
class Alert(ApiObject):
    """A measure of a revision that passed its limit. seen: when it did last."""

    id: int
    endpoint: str
    version: int | None = None
    run: str = ""
    policy_version: str = ""
    rule: str = ""
    measure: str = ""
    value: float | None = None
    baseline: float | None = None
    limit: float | None = None
    margin: float | None = None
    count: int | None = None
    detail: str = ""
    open: bool = True
    note: str = ""
    raised: datetime | None = None
    seen: datetime | None = None
    closed: datetime | None = None


class Samples(Calls[DriverT]):
    """Requests that an endpoint recorded. Scope `reward` or `admin`."""

    @list_operation
    def list(
        self,
        endpoint: str | Endpoint,
        *,
        since: datetime | str | None = None,
        flag: str | None = None,
        version: int | None = None,
        run: str | None = None,
        page_size: int | None = None,
    ) -> Pages[SampledRequest]:
        """Newest first. flag: those with this flag, such as `uncertain`. version: answered by this revision."""
        time = since.isoformat() if isinstance(since, datetime) else since
        params = {"since": time, "flag": flag, "version": version, "run": run}
        path = self._path("endpoints", endpoint, "samples")
        return Pages(path, ObjectReader(SampledRequest), params, page_size)

    @operation
    def get(self, endpoint: str | Endpoint, sample: int) -> Request[SampledRequest]:
        """With what was sent and answered. Scope `admin`."""
        path = self._path("endpoints", endpoint, "samples", sample)
        return Request("GET", path, ObjectReader(SampledRequest))


class Alerts(Calls[DriverT]):
    """Scope `reward` or `admin` to read."""

    @operation
    def get(self, alert: int) -> Request[Alert]:
        return Request("GET", self._path("alerts", alert), ObjectReader(Alert))

    @operation
    def close(self, alert: int, *, note: str = "") -> Request[Alert]:
        """Close an alert, with a note of what was found. Scope `admin`."""
        return Request("POST", self._path("alerts", alert, "close"), ObjectReader(Alert), json={"note": note})

    @list_operation
    def list(
        self,
        *,
        state: str | None = None,
        endpoint: str | Endpoint | None = None,
        page_size: int | None = None,
    ) -> Pages[Alert]:
        """Newest first. state: open or closed."""
        params = {"state": state, "endpoint": None if endpoint is None else str(endpoint)}
        return Pages(self._path("alerts"), ObjectReader(Alert), params, page_size)
