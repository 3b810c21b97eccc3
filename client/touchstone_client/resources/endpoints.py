"""`client.endpoints`: what is served, its revisions and releases, and its usage."""

import time
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any, ClassVar

from touchstone_client.api_objects import ApiObject, ObjectReader, api_object
from touchstone_client.calls import (
    Calls,
    DriverT,
    Flow,
    Pause,
    Request,
    api_path,
    flow_operation,
    given,
    list_operation,
    operation,
    send,
)
from touchstone_client.errors import RewardServiceError
from touchstone_client.listings import Pages
from touchstone_client.resources.training import RewardModel, TrainingRun, model_name

_POLL_SECONDS = 0.5


@api_object
class EndpointRevision(ApiObject):
    number: int
    spec: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    created: datetime | None = None

    HIDDEN: ClassVar[tuple[str, ...]] = ("spec",)


@api_object
class Endpoint(ApiObject):
    """active: number of the revision that is served, with its `spec`. standby: that of one kept loaded and warm.
    revisions: of `get`, newest first. revision: the new one, of the calls that make one."""

    endpoint: str
    project: str = ""
    active: int | None = None
    spec: dict[str, Any] | None = None
    standby: int | None = None
    switched_off: bool = False
    switched_off_reason: str = ""
    revisions: tuple[EndpointRevision, ...] = ()
    revision: EndpointRevision | None = None

    HIDDEN: ClassVar[tuple[str, ...]] = ("spec", "revisions")

    def __str__(self) -> str:
        return self.endpoint


@api_object
class ReleaseVerdict(ApiObject):
    says: str
    reason: str = ""


@api_object
class Release(ApiObject):
    """A revision that answers as a shadow, or as a canary for a `share` of what is asked, next to `against`."""

    revision: int
    against: int
    stage: str
    share: float = 0.0
    automatic: bool = False
    rules: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    started: datetime | None = None
    ended: datetime | None = None
    verdict: ReleaseVerdict | None = None


@api_object
class FlagCount(ApiObject):
    flag: str
    version: int
    items: int
    share: float


@api_object
class EndpointUsage(ApiObject):
    """total, and `by` version, caller, run or policy version: counts, rewards and milliseconds."""

    endpoint: str
    span: str
    total: dict[str, Any] = field(default_factory=dict)
    by: dict[str, dict[str, Any]] = field(default_factory=dict)
    not_listed: int = 0
    flags: tuple[FlagCount, ...] = ()
    flags_by_day: Any = None


class Endpoints(Calls[DriverT]):
    """Scope `admin`."""

    @operation
    def get(self, endpoint: str | Endpoint) -> Request[Endpoint]:
        """With its revisions."""
        return Request("GET", self._path("endpoints", endpoint), _read)

    @operation
    def deploy(
        self,
        model: str | RewardModel | TrainingRun,
        endpoint: str | Endpoint,
        *,
        stage: str | None = None,
        share: float | None = None,
        automatic: bool | None = None,
        reason: str | None = None,
    ) -> Request[Endpoint]:
        """Put a model, or the model of a training run, on an endpoint, which is made if there is none.

        The components, transforms and policy template of the active revision stay; its model is replaced. stage:
        `shadow`, `canary` with its share of what is asked, or `standby` (loaded and warm), instead of immediately.
        automatic: decided by rules. reason: required where the model is no better than chance, or another check of its
        report failed; the error says which.
        """
        body = given(model=model_name(model), stage=stage, share=share, automatic=automatic, reason=reason)
        return Request("POST", self._path("endpoints", endpoint, "deploy"), _read, json=body)

    @flow_operation
    def wait(
        self, endpoint: str | Endpoint, *, revision: int | None = None, timeout: float | None = 120.0
    ) -> Flow[dict[str, Any]]:
        """Wait until rewards are answered by a revision, by default the active one, which is loaded within seconds.

        Returns what `client.rewards(endpoint).describe()` does. Scope `admin`, and `reward`. Raises TimeoutError.
        """
        if revision is None:
            found = yield from send(Request("GET", self._path("endpoints", endpoint), _read))
            revision = found.active
        until = None if timeout is None else time.monotonic() + timeout
        request = Request("GET", api_path("rewards", endpoint) + "/", dict)
        while True:
            served = yield from _served(request)
            if served.get("version") == revision:
                return served
            if until is not None and time.monotonic() >= until:
                raise TimeoutError(
                    f"{endpoint} does not serve revision {revision} after {timeout:g} seconds."
                )
            yield Pause(_POLL_SECONDS)

    @operation
    def put(
        self,
        endpoint: str | Endpoint,
        spec: Mapping[str, Any],
        *,
        stage: str | None = None,
        share: float | None = None,
        automatic: bool | None = None,
        reason: str | None = None,
    ) -> Request[Endpoint]:
        """A new revision from a spec: {"components": [{"name", "type", "model", "weight"}], "transforms": [...]}."""
        params = {"stage": stage, "share": share, "automatic": automatic, "reason": reason}
        return Request("PUT", self._path("endpoints", endpoint), _read, params=params, json=dict(spec))

    @operation
    def rollback(
        self, endpoint: str | Endpoint, *, to: int | None = None, reason: str = ""
    ) -> Request[Endpoint]:
        """Serve an earlier revision again; without `to`, the one before the active one. reason: as of `deploy`, for a
        revision that was never promoted."""
        return Request(
            "POST", self._path("endpoints", endpoint, "rollback"), _read, json={"to": to, "reason": reason}
        )

    @operation
    def set_standby(
        self, endpoint: str | Endpoint, revision: int | None, *, reason: str = ""
    ) -> Request[Endpoint]:
        """Keep a revision loaded and warm until it is promoted; None ends it. It needs its memory next to that of the
        active revision."""
        path = self._path("endpoints", endpoint, "standby")
        return Request("PUT", path, _read, json={"revision": revision, "reason": reason})

    @operation
    def promote_standby(self, endpoint: str | Endpoint) -> Request[Endpoint]:
        """Make the standby revision the active one, which stands by then: promoting again rolls back."""
        return Request("POST", self._path("endpoints", endpoint, "standby", "promote"), _read)

    @operation
    def switch_off(self, endpoint: str | Endpoint, reason: str) -> Request[Endpoint]:
        """Answer every request for a reward with 503 and the reason, immediately."""
        path = self._path("endpoints", endpoint, "switch-off")
        return Request("POST", path, _read, json={"reason": reason})

    @operation
    def switch_on(self, endpoint: str | Endpoint) -> Request[Endpoint]:
        return Request("POST", self._path("endpoints", endpoint, "switch-on"), _read)

    @operation
    def usage(
        self, endpoint: str | Endpoint, *, span: str = "day", by: str = "version"
    ) -> Request[EndpointUsage]:
        """span: day, week or month. by: version, caller, run or policy_version."""
        path = self._path("endpoints", endpoint, "usage")
        return Request("GET", path, ObjectReader(EndpointUsage), params={"span": span, "by": by})

    @operation
    def release(self, endpoint: str | Endpoint) -> Request[Release]:
        """The open release, else the one that ended last."""
        return Request("GET", self._path("endpoints", endpoint, "release"), _read_release)

    @operation
    def start_release(
        self,
        endpoint: str | Endpoint,
        revision: int,
        *,
        stage: str = "shadow",
        share: float | None = None,
        rules: Mapping[str, Any] | None = None,
        automatic: bool | None = None,
        reason: str | None = None,
    ) -> Request[Release]:
        """Release a revision as a shadow, or as a canary with a share of what is asked. reason: as of `deploy`."""
        more = given(
            share=share,
            rules=None if rules is None else dict(rules),
            automatic=automatic,
            reason=reason,
        )
        body = {"revision": revision, "stage": stage, **more}
        return Request("POST", self._path("endpoints", endpoint, "release"), _read_release, json=body)

    @operation
    def make_canary(self, endpoint: str | Endpoint, share: float, *, reason: str = "") -> Request[Release]:
        """Make the open release a canary, or change its share. reason: as of `deploy`."""
        path = self._path("endpoints", endpoint, "release", "canary")
        return Request("POST", path, _read_release, json={"share": share, "reason": reason})

    @operation
    def promote_release(self, endpoint: str | Endpoint, *, reason: str = "") -> Request[Endpoint]:
        """Make the revision of the open release the active one."""
        path = self._path("endpoints", endpoint, "release", "promote")
        return Request("POST", path, _read, json={"reason": reason})

    @operation
    def roll_back_release(self, endpoint: str | Endpoint, *, reason: str = "") -> Request[Release]:
        """End the open release; the active revision stays."""
        path = self._path("endpoints", endpoint, "release", "rollback")
        return Request("POST", path, _read_release, json={"reason": reason})

    @list_operation
    def list(self, *, page_size: int | None = None) -> Pages[Endpoint]:
        """Newest first."""
        return Pages(self._path("endpoints"), _read, page_size=page_size)


def _served(request: Request[dict[str, Any]]) -> Flow[dict[str, Any]]:
    """What an endpoint serves; nothing while the rewards process does not know it, or loads its first model."""
    try:
        return (yield from send(request))
    except RewardServiceError as error:
        if error.status not in (404, 503) or error.problem.get("switched_off"):
            raise
        return {}


_read = ObjectReader(Endpoint)
_read_release = ObjectReader(Release)
