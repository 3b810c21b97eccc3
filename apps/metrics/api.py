"""Metrics and inductions over the JSON API."""

from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Field, Router, Schema, Status

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope
from apps.annotation.selectors import get_campaign_by_name
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.core.http.api_schemas import Cursor, JobProgress, JobStateName, Limit, StrictBody
from apps.core.http.api_scopes import needs
from apps.core.http.document_types import choices
from apps.core.jobs.job_queue import request_cancel
from apps.llm.selectors import get_llm_connection
from apps.metrics.models import Induction, Metric
from apps.metrics.selectors import (
    get_induction,
    induction_report,
    list_inductions,
    metric_definition,
    project_metrics,
    with_counts,
)
from apps.metrics.services import start_induction

router = Router()
_TRAIN = needs(Scope.TRAIN)


MetricState = Annotated[Metric.State, choices(Metric.State)]
InductionEngine = Annotated[Induction.Engine, choices(Induction.Engine)]


class MetricOut(Schema):
    """praised, blamed: points of comments. kept, violated, judged: trajectories."""

    id: int
    name: str
    definition: str
    state: MetricState
    induction: int
    criterion: str | None = Field(description="what it was accepted as")
    praised: int
    blamed: int
    kept: int
    violated: int
    judged: int


class MetricPage(Schema):
    items: list[MetricOut]
    next: str | None


class InductionIn(StrictBody):
    campaign: str | None = Field(None, description="only the comments of this campaign")
    llm_connection: str | None = Field(None, description="by default the embedded engine")
    seed: int = Field(0, ge=0, lt=2**31, description="of the held-out split")


class HeldOutOut(Schema):
    """Of the n points that the metrics were not made from."""

    coverage: float | None = None
    redundancy: float | None = None
    n: int


class InductionOut(Schema):
    """coverage: share of the points that a metric covers. redundancy: how similar the metrics are to each other."""

    induction: int
    number: int = Field(description="within the project")
    state: JobStateName
    campaign: str | None
    engine: InductionEngine
    llm_connection: str | None
    seed: int
    progress: JobProgress
    error: str
    coverage: float | None
    redundancy: float | None
    held_out: HeldOutOut | None
    warnings: list[str]
    created: datetime
    started: datetime | None
    finished: datetime | None


class InductionPage(Schema):
    items: list[InductionOut]
    next: str | None


class AspectOut(Schema):
    """A point of a comment: on the trajectory with this id, at this step (all steps count, from 0)."""

    feedback: str
    behaviour: str
    sign: Literal[-1, 1]
    trajectory: int
    step: int | None
    comment: int


class InducedMetricOut(Schema):
    """degenerate: why its verdicts do not distinguish trajectories; empty where they do."""

    name: str
    definition: str
    degenerate: str
    good: list[str]
    bad: list[str]
    aspects: list[AspectOut]


class InductionReport(InductionOut):
    metrics: list[InducedMetricOut]


@router.get("/projects/{slug}/metrics", response=MetricPage, summary="List metrics", openapi_extra=_TRAIN)
def list_metrics(
    request: KeyRequest, slug: str, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> MetricPage:
    """Those in use, newest first: accepted ones, and those that the latest induction proposes."""
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    page, following = paginate(with_counts(project_metrics(project)), cursor=cursor, limit=limit, field=None)
    return MetricPage(items=[_metric_out(metric) for metric in page], next=following)


@router.get(
    "/projects/{slug}/inductions",
    response=InductionPage,
    operation_id="list_inductions",
    summary="List inductions",
    openapi_extra=_TRAIN,
)
def list_project_inductions(
    request: KeyRequest, slug: str, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> InductionPage:
    """Newest first."""
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    page, following = paginate(list_inductions(project), cursor=cursor, limit=limit)
    return InductionPage(items=[InductionOut(**_fields(induction)) for induction in page], next=following)


@router.post(
    "/projects/{slug}/inductions",
    response={202: InductionOut},
    operation_id="start_induction",
    summary="Extract metrics from comments",
    openapi_extra=_TRAIN,
)
def create_induction(request: KeyRequest, slug: str, body: InductionIn) -> Status[InductionOut]:
    """A worker does it; follow it with `GET .../inductions/{id}`. A project has one at a time."""
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    campaign = (
        None if body.campaign is None else get_campaign_by_name(project, body.campaign, pointer="/campaign")
    )
    connection = get_llm_connection(project, body.llm_connection) if body.llm_connection else None
    induction = start_induction(
        project=project, campaign=campaign, llm_connection=connection, seed=body.seed, by=request.auth
    )
    return Status(202, InductionOut(**_fields(induction)))


@router.get(
    "/projects/{slug}/inductions/{int:pk}",
    response=InductionReport,
    operation_id="get_induction",
    summary="An induction and its metrics",
    openapi_extra=_TRAIN,
)
def get_project_induction(request: KeyRequest, slug: str, pk: int) -> InductionReport:
    induction = get_induction(project_of_key(request.auth, slug, Scope.TRAIN), pk)
    return InductionReport(**_fields(induction), metrics=induction_report(induction)["metrics"])


@router.post(
    "/projects/{slug}/inductions/{int:pk}/cancel",
    response=InductionOut,
    summary="Cancel an induction",
    openapi_extra=_TRAIN,
)
def cancel_induction(request: KeyRequest, slug: str, pk: int) -> InductionOut:
    induction = get_induction(project_of_key(request.auth, slug, Scope.TRAIN), pk)
    request_cancel(induction)
    return InductionOut(**_fields(induction))


def _metric_out(metric: Metric) -> MetricOut:
    """metric: of `with_counts`."""
    names = ("praised", "blamed", "kept", "violated", "judged")
    return MetricOut(
        id=metric.pk,
        name=metric.name,
        definition=metric_definition(metric),
        state=Metric.State(metric.state),
        induction=metric.induction_id,
        criterion=metric.criterion.name if metric.criterion else None,
        **{name: getattr(metric, name) for name in names},
    )


def _fields(induction: Induction) -> dict[str, Any]:
    result = induction.result
    return {
        "induction": induction.pk,
        "number": induction.number,
        "state": induction.state,
        "campaign": induction.campaign.name if induction.campaign else None,
        "engine": induction.engine,
        "llm_connection": induction.llm_connection.name if induction.llm_connection else None,
        "seed": induction.seed,
        "progress": induction.progress,
        "error": induction.error,
        "coverage": result.get("coverage"),
        "redundancy": result.get("redundancy"),
        "held_out": result.get("held_out"),
        "warnings": result.get("warnings") or [],
        "created": induction.created_at,
        "started": induction.started_at,
        "finished": induction.finished_at,
    }
