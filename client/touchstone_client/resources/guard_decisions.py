"""`client.guard_decisions`: what an endpoint's guard decided, and what people answer about it."""

from dataclasses import field
from datetime import datetime
from typing import Any, ClassVar

from touchstone_client.api_objects import ApiObject, ObjectReader, api_object
from touchstone_client.calls import Calls, DriverT, Request, list_operation, operation
from touchstone_client.listings import Pages
from touchstone_client.resources.endpoints import Endpoint


@api_object
class LoggedDecision(ApiObject):
    """rule: the check that decided; empty where none did. review: waiting, right, wrong, or empty. milliseconds: within
    the service. Of `get`: reason, violations, note, and prefix and action, redacted excerpts of what was sent."""

    id: int
    version: int | None = None
    caller: str | None = None
    run: str | None = None
    policy_version: str | None = None
    decision: str = ""
    rule: str = ""
    reward: float | None = None
    milliseconds: float | None = None
    review: str = ""
    at: datetime | None = None
    reason: str = ""
    violations: list[dict[str, Any]] = field(default_factory=list)
    prefix: str = ""
    action: str = ""
    note: str = ""
    answered: datetime | None = None

    HIDDEN: ClassVar[tuple[str, ...]] = ("prefix", "action")


@api_object
class RulePrecision(ApiObject):
    """Decisions of a kind by a rule. precision: share of `right` among the answered ones; low, high: its 95 %
    interval."""

    rule: str
    decision: str = ""
    count: int = 0
    waiting: int = 0
    right: int = 0
    wrong: int = 0
    precision: float | None = None
    low: float = 0.0
    high: float = 1.0


@api_object
class GuardLog(ApiObject):
    """review_share: of the decisions that people review, besides all that ask one. days: of retention. characters: of
    each excerpt; 0 stores none."""

    endpoint: str
    review_share: float | None = None
    days: int | None = None
    characters: int | None = None
    rules: tuple[RulePrecision, ...] = ()


class GuardDecisions(Calls[DriverT]):
    """Decisions of an endpoint's guard. Scope `reward` or `admin`."""

    @list_operation
    def list(
        self,
        endpoint: str | Endpoint,
        *,
        decision: str | None = None,
        rule: str | None = None,
        review: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        page_size: int | None = None,
    ) -> Pages[LoggedDecision]:
        """Newest first. decision: allow, deny or ask. review: waiting, right or wrong."""
        times = [each.isoformat() if isinstance(each, datetime) else each for each in (since, until)]
        params = {"decision": decision, "rule": rule, "review": review, "since": times[0], "until": times[1]}
        path = self._path("endpoints", endpoint, "guard-decisions")
        return Pages(path, ObjectReader(LoggedDecision), params, page_size)

    @operation
    def get(self, endpoint: str | Endpoint, decision: int | LoggedDecision) -> Request[LoggedDecision]:
        """With its reason and excerpts of what was sent. Scope `admin`."""
        return Request("GET", self._decision(endpoint, decision), ObjectReader(LoggedDecision))

    @operation
    def answer(
        self, endpoint: str | Endpoint, decision: int | LoggedDecision, is_right: bool, *, note: str = ""
    ) -> Request[LoggedDecision]:
        """Whether it was right, as a person sees it: with a member's key. Scope `admin`."""
        path = self._decision(endpoint, decision, "answer")
        body = {"is_right": is_right, "note": note}
        return Request("POST", path, ObjectReader(LoggedDecision), json=body)

    @operation
    def log(self, endpoint: str | Endpoint) -> Request[GuardLog]:
        """The settings of the log, and how often people found each rule right."""
        return Request("GET", self._path("endpoints", endpoint, "guard-log"), ObjectReader(GuardLog))

    @operation
    def set_log(
        self, endpoint: str | Endpoint, *, review_share: float = 0.1, days: int = 30, characters: int = 1000
    ) -> Request[GuardLog]:
        """Change the settings of the log. Scope `admin`."""
        body = {"review_share": review_share, "days": days, "characters": characters}
        path = self._path("endpoints", endpoint, "guard-log")
        return Request("PUT", path, ObjectReader(GuardLog), json=body)

    def _decision(self, endpoint: str | Endpoint, decision: int | LoggedDecision, *rest: str) -> str:
        key = decision if isinstance(decision, int) else decision.id
        return self._path("endpoints", endpoint, "guard-decisions", key, *rest)
