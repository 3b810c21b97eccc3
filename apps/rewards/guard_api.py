"""The log of an endpoint's guard over the JSON API: decisions, people's answers, and precision by rule."""

from datetime import datetime
from typing import Any, Literal

from ninja import Field, Router, Schema
from pydantic import AwareDatetime

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.core.http.api_schemas import Cursor, Limit, StrictBody
from apps.core.http.api_scopes import needs
from apps.rewards.guard_selectors import REVIEWS, guard_decision, rule_precisions
from apps.rewards.guard_services import answer_decision, keep_guard_log
from apps.rewards.models import Endpoint, GuardDecision
from apps.rewards.selectors import endpoint_of

router = Router()
READ = (Scope.REWARD, Scope.ADMIN)


class GuardDecisionOut(Schema):
    """rule: the check that decided; empty where none did. review: `waiting` for a person, `right` or `wrong` as one
    answered, empty where it is not sampled. milliseconds: within the service."""

    id: int
    version: int
    caller: str
    run: str
    policy_version: str
    decision: Literal["allow", "deny", "ask"]
    rule: str
    reward: float
    milliseconds: float
    review: Literal["", "waiting", "right", "wrong"]
    at: datetime


class GuardDecisionPage(Schema):
    items: list[GuardDecisionOut]
    next: str | None


class GuardViolationOut(Schema):
    """A check that the action breaks. call: which of its tool calls, from 0."""

    rule: str
    effect: Literal["deny", "ask"]
    tool: str
    call: int
    reason: str


class GuardDecisionReport(GuardDecisionOut):
    """prefix, action: redacted excerpts of what was before the action, and of it."""

    reason: str
    violations: list[GuardViolationOut]
    prefix: str
    action: str
    note: str
    answered: datetime | None


class GuardAnswerIn(StrictBody):
    is_right: bool = Field(description="whether the decision was right")
    note: str = Field("", max_length=2000)


class RulePrecisionOut(Schema):
    """precision: share of `right` among the answered ones, null without answers; low, high: its 95 % interval."""

    rule: str
    decision: str
    count: int
    waiting: int
    right: int
    wrong: int
    precision: float | None
    low: float
    high: float


class GuardLogIn(StrictBody):
    review_share: float = Field(
        0.1, description="of decisions that people review; those that ask are all reviewed"
    )
    days: int = Field(30, description="of retention")
    characters: int = Field(1000, description="of each excerpt; 0 stores none")


class GuardLogOut(Schema):
    endpoint: str
    review_share: float
    days: int
    characters: int
    rules: list[RulePrecisionOut]


@router.get(
    "/projects/{slug}/endpoints/{name}/guard-decisions",
    response=GuardDecisionPage,
    summary="List the decisions of an endpoint's guard",
    openapi_extra=needs(*READ),
)
def list_guard_decisions(
    request: KeyRequest,
    slug: str,
    name: str,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
    decision: Literal["allow", "deny", "ask"] | None = None,
    rule: str | None = None,
    review: Literal["waiting", "right", "wrong"] | None = None,
    since: AwareDatetime | None = None,
    until: AwareDatetime | None = None,
) -> GuardDecisionPage:
    """Newest first, without what was sent. since, until: decided within this time."""
    rows = endpoint_of(project_of_key(request.auth, slug, *READ), name).guard_decisions.all()
    filters: dict[str, Any] = {"decision": decision, "rule": rule, "at__gte": since, "at__lt": until}
    rows = rows.filter(**{field: value for field, value in filters.items() if value is not None})
    if review is not None:
        rows = rows.filter(**REVIEWS[review])
    page, following = paginate(rows, cursor=cursor, limit=limit, field="at")
    return GuardDecisionPage(items=[GuardDecisionOut(**_fields(row)) for row in page], next=following)


@router.get(
    "/projects/{slug}/endpoints/{name}/guard-decisions/{int:pk}",
    response=GuardDecisionReport,
    summary="A decision with its reason and excerpts of what was sent",
    openapi_extra=needs(Scope.ADMIN),
)
def get_guard_decision(request: KeyRequest, slug: str, name: str, pk: int) -> GuardDecisionReport:
    return _report(guard_decision(_endpoint(request, slug, name), pk))


@router.post(
    "/projects/{slug}/endpoints/{name}/guard-decisions/{int:pk}/answer",
    response=GuardDecisionReport,
    summary="Answer whether a decision was right",
    openapi_extra=needs(Scope.ADMIN, person=True),
)
def answer_guard_decision(
    request: KeyRequest, slug: str, name: str, pk: int, body: GuardAnswerIn
) -> GuardDecisionReport:
    """It takes a member's key: a person answers. A later answer replaces it."""
    decision = guard_decision(_endpoint(request, slug, name), pk)
    return _report(
        answer_decision(decision=decision, is_right=body.is_right, note=body.note, by=request.auth)
    )


@router.get(
    "/projects/{slug}/endpoints/{name}/guard-log",
    response=GuardLogOut,
    summary="Precision of a guard by rule, and the settings of its log",
    openapi_extra=needs(*READ),
)
def get_guard_log(request: KeyRequest, slug: str, name: str) -> GuardLogOut:
    return _log(endpoint_of(project_of_key(request.auth, slug, *READ), name))


@router.put(
    "/projects/{slug}/endpoints/{name}/guard-log",
    response=GuardLogOut,
    summary="Change the settings of a guard's log",
    openapi_extra=needs(Scope.ADMIN),
)
def put_guard_log(request: KeyRequest, slug: str, name: str, body: GuardLogIn) -> GuardLogOut:
    """With `characters` 0, the excerpts that are there are deleted."""
    endpoint = _endpoint(request, slug, name)
    return _log(keep_guard_log(endpoint=endpoint, by=request.auth, **body.dict()))


def _endpoint(request: KeyRequest, slug: str, name: str) -> Endpoint:
    return endpoint_of(project_of_key(request.auth, slug, Scope.ADMIN), name)


def _fields(row: GuardDecision) -> dict[str, Any]:
    same = GuardDecisionOut.model_fields.keys() - {"id"}
    return {name: getattr(row, name) for name in same} | {"id": row.pk}


def _report(row: GuardDecision) -> GuardDecisionReport:
    more = {name: getattr(row, name) for name in ("reason", "violations", "prefix", "action", "note")}
    return GuardDecisionReport(**_fields(row), **more, answered=row.answered_at)


def _log(endpoint: Endpoint) -> GuardLogOut:
    names = RulePrecisionOut.model_fields
    return GuardLogOut(
        endpoint=endpoint.name,
        review_share=endpoint.guard_review_share,
        days=endpoint.guard_days,
        characters=endpoint.guard_characters,
        rules=[
            RulePrecisionOut(**{name: getattr(row, name) for name in names})
            for row in rule_precisions(endpoint)
        ],
    )
