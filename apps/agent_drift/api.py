"""Drift between agent versions over the JSON API."""

from datetime import date, datetime
from typing import Any

from ninja import Field, Query, Router, Schema

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import AuditEvent, Scope
from apps.agent_drift import references, selectors
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.core.http.api_schemas import Cursor, Limit, StrictBody
from apps.core.http.api_scopes import needs

router = Router()
READERS = (Scope.REWARD, Scope.ADMIN)  # as of the alerts of endpoints
_READ, _WRITE = needs(*READERS), needs(Scope.ADMIN)
_BASE = "/projects/{slug}/agent-versions"


class AgentVersionsOut(Schema):
    agent: str
    versions: list[str] = Field(description="the oldest first, by their first trajectory")
    reference: str = Field(description="the version that later ones are compared with")
    is_chosen: bool = Field(description="whether someone chose it; else it is the oldest")


class VersionScoreOut(Schema):
    agent: str
    version: str
    score: str = Field(description="`failed outcome`, or the name of a metric or a judge's criterion")
    state: str = Field(description="reference, before the reference, not worse, worse, or what is missing")
    bad: int = Field(description="trajectories whose outcome failed, or whose score is below 0")
    trajectories: int = Field(description="with the score")
    share: float | None = Field(description="bad of all")
    interval: list[float] = Field(description="of the share, at all times together (95 %)")
    reference: str
    reference_share: float | None
    log_e_value: float | None = Field(description="evidence that it is worse; null where it is not tested")
    since: datetime = Field(description="when its first trajectory was imported")


class AgentVersionsReport(Schema):
    agents: list[AgentVersionsOut]
    scores: list[VersionScoreOut]


class AgentReferenceIn(StrictBody):
    agent: str = Field(max_length=200)
    version: str | None = Field(max_length=200, description="null for the oldest")


class DriftAlertOut(Schema):
    id: int
    raised: datetime
    version: str = Field(description="the agent and its version")
    score: str
    share: float
    trajectories: int
    reference: str
    reference_share: float
    log_e_value: float


class DriftAlertPage(Schema):
    items: list[DriftAlertOut]
    next: str | None


class ScoreDayOut(Schema):
    day: date
    version: str
    bad: int
    trajectories: int


class ScoreSeriesOut(Schema):
    agent: str
    score: str
    days: list[ScoreDayOut]


@router.get(
    _BASE, response=AgentVersionsReport, operation_id="list_agent_versions",
    summary="Compare the versions of agents", openapi_extra=_READ,
)  # fmt: skip
def list_versions(
    request: KeyRequest,
    slug: str,
    agent: str | None = Query(None, max_length=200, description="the name of one agent; all without it"),
) -> dict[str, Any]:
    """Agents with several versions, and each of their scores tested against the reference version."""
    project = project_of_key(request.auth, slug, *READERS)
    agents = selectors.list_agent_versions(project)
    return {
        "agents": [_versions_out(each) for each in agents if agent in (None, each.agent_name)],
        "scores": [_score_out(row) for row in selectors.version_scores(project, agent)],
    }


@router.put(
    f"{_BASE}/reference", response=AgentVersionsReport, operation_id="choose_agent_reference",
    summary="Choose the version that later ones are compared with", openapi_extra=_WRITE,
)  # fmt: skip
def choose_reference(request: KeyRequest, slug: str, body: AgentReferenceIn) -> dict[str, Any]:
    """Alerts against the new reference are raised with the next look, within ten minutes."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    references.choose_reference(project=project, agent=body.agent, version=body.version, by=request.auth)
    agents = selectors.list_agent_versions(project)
    return {
        "agents": [_versions_out(each) for each in agents if each.agent_name == body.agent],
        "scores": [_score_out(row) for row in selectors.version_scores(project, body.agent)],
    }


@router.get(
    f"{_BASE}/alerts", response=DriftAlertPage, operation_id="list_drift_alerts",
    summary="List alerts of agent versions that are worse", openapi_extra=_READ,
)  # fmt: skip
def list_alerts(
    request: KeyRequest, slug: str, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> dict[str, Any]:
    """Newest first; one for each score of each version against a reference."""
    project = project_of_key(request.auth, slug, *READERS)
    page, following = paginate(selectors.list_drift_alerts(project), cursor=cursor, limit=limit, field=None)
    return {"items": [_alert_out(event) for event in page], "next": following}


@router.get(
    f"{_BASE}/series", response=ScoreSeriesOut, operation_id="get_agent_score_series",
    summary="A score of an agent by day and version", openapi_extra=_READ,
)  # fmt: skip
def read_series(
    request: KeyRequest,
    slug: str,
    agent: str = Query("", max_length=200, description="its name; empty for the agent without one"),
    score: str = Query(
        selectors.OUTCOME, max_length=200, description="`failed outcome`, or the name of a score"
    ),
) -> dict[str, Any]:
    """Days in UTC on which trajectories with the score were imported."""
    project = project_of_key(request.auth, slug, *READERS)
    days = selectors.score_series(project, agent, score)
    return {
        "agent": agent,
        "score": score,
        "days": [
            {"day": each.day, "version": each.agent_version, "bad": each.count.bad,
             "trajectories": each.count.trials}
            for each in days
        ],
    }  # fmt: skip


def _versions_out(each: selectors.AgentVersions) -> dict[str, Any]:
    return {
        "agent": each.agent_name,
        "versions": each.versions,
        "reference": each.reference,
        "is_chosen": each.is_chosen,
    }


def _score_out(row: selectors.VersionScore) -> dict[str, Any]:
    return {
        "agent": row.agent_name,
        "version": row.agent_version,
        "score": row.score,
        "state": row.state,
        "bad": row.count.bad,
        "trajectories": row.count.trials,
        "share": row.share,
        "interval": list(row.interval),
        "reference": row.reference_version,
        "reference_share": row.reference.share,
        "log_e_value": row.log_e_value,
        "since": row.since,
    }


def _alert_out(event: AuditEvent) -> dict[str, Any]:
    data = event.data
    names = ("version", "score", "share", "trajectories", "reference_share", "log_e_value")
    return {
        "id": event.pk,
        "raised": event.at,
        "reference": data["reference_version"],
        **{name: data[name] for name in names},
    }
