"""Bulk jobs over the JSON API."""

from datetime import datetime
from typing import Annotated, Any

from django.http import StreamingHttpResponse
from ninja import Field, Router, Schema, Status

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Project, Scope
from apps.bulk import services
from apps.bulk.estimates import estimate_bulk_job
from apps.bulk.exports import result_lines
from apps.bulk.models import BulkJob
from apps.bulk.selectors import get_bulk_job, job_progress
from apps.bulk.selectors import list_bulk_jobs as bulk_jobs_of
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.core.http.api_schemas import Cursor, JobProgress, Limit, StrictBody
from apps.core.http.api_scopes import needs
from apps.core.http.document_types import choices
from apps.core.http.media_types import json_lines
from apps.core.http.streaming import StreamedLines
from apps.judges.selectors import get_judge_by_name
from apps.metrics.selectors import get_induction
from apps.rewards.selectors import endpoint_of
from apps.training.selectors import model_named
from apps.trajectories.filter_schemas import FilterDocument

router = Router()
_TRAIN = needs(Scope.TRAIN)
_ONE = "/projects/{slug}/bulk-jobs/{int:pk}"
BulkWork = Annotated[BulkJob.Work, choices(BulkJob.Work)]


class BulkEstimateIn(StrictBody):
    work: BulkWork
    model: str = Field(
        "", description="of score and embed: name or name@version; by default the newest version"
    )
    judge: str = Field("", description="of judge: its name")
    induction: int | None = Field(None, description="of induce: its number")
    endpoint: str = Field("", description="of endpoint: its name; the revision that is active now scores")
    filter: FilterDocument = ""


class BulkJobIn(BulkEstimateIn):
    steps: bool = Field(False, description="of score: keep the rewards of agent steps too")


class BulkEstimateOut(Schema):
    items: int
    tokens: int = Field(description="of the trajectories, by their size")
    seconds: float | None = Field(description="of one worker; null where the engine has done nothing yet")
    cost: float | None = Field(
        description="in the currency of the connection's prices; null where none is known"
    )
    basis: str


class BulkJobOut(Schema):
    id: int
    number: int = Field(description="within the project")
    work: str
    model: str | None
    judge: str | None
    induction: int | None
    endpoint: str | None = Field(description="with its revision")
    filter: str
    steps: bool
    state: str
    error: str
    progress: JobProgress
    items: int
    done: int = Field(description="with a result, a problem, or deleted meanwhile")
    problems: int
    missing: int = Field(description="deleted after the job was created")
    tokens: int
    failed_chunks: int
    per_second: float = Field(
        description="items of all workers over the last minute; of an ended job the mean"
    )
    tokens_per_second: float
    seconds_left: float | None
    created: datetime
    finished: datetime | None


class BulkJobPage(Schema):
    items: list[BulkJobOut]
    next: str | None


BulkAnswer = Annotated[
    dict[str, Any],
    Field(description="of a judge, its answer to a criterion; of an induction, {metric, sign, value, step}"),
]


class BulkResultLine(Schema):
    trajectory: str
    external_id: str
    task: str
    reward: float | None = None
    std: float | None = None
    tokens: int = 0
    truncated: bool = False
    steps: list[float] | None = None
    embedding: list[float] | None = None
    answer: list[BulkAnswer] | None = None
    problem: str = ""


@router.get(
    "/projects/{slug}/bulk-jobs", response=BulkJobPage, summary="List bulk jobs", openapi_extra=_TRAIN
)
def list_bulk_jobs(
    request: KeyRequest, slug: str, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> dict[str, Any]:
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    page, following = paginate(bulk_jobs_of(project), cursor=cursor, limit=limit)
    return {"items": [bulk_job_out(job) for job in page], "next": following}


@router.post(
    "/projects/{slug}/bulk-jobs",
    response={201: BulkJobOut},
    summary="Create a bulk job",
    openapi_extra=_TRAIN,
)
def create_bulk_job(request: KeyRequest, slug: str, body: BulkJobIn) -> Status:
    """The trajectories are chosen now; later imports do not change the job."""
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    job = services.create_bulk_job(**_named(project, body), with_steps=body.steps, by=request.auth)
    return Status(201, bulk_job_out(job))


@router.post(
    "/projects/{slug}/bulk-jobs/estimate",
    response=BulkEstimateOut,
    summary="Estimate a bulk job",
    openapi_extra=_TRAIN,
)
def estimate_bulk(request: KeyRequest, slug: str, body: BulkEstimateIn) -> dict[str, Any]:
    """How many items, how long and what it costs, before it is created."""
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    found = estimate_bulk_job(**_named(project, body))
    return {
        "items": found.items,
        "tokens": found.tokens,
        "seconds": found.seconds,
        "cost": None if found.cost is None else float(found.cost),
        "basis": found.basis,
    }


@router.get(
    _ONE, response=BulkJobOut, operation_id="get_bulk_job", summary="A bulk job", openapi_extra=_TRAIN
)
def read_bulk_job(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    return bulk_job_out(_job(request, slug, pk))


@router.get(
    _ONE + "/results",
    summary="Results of a bulk job",
    operation_id="list_bulk_results",
    openapi_extra=_TRAIN | json_lines(BulkResultLine.model_json_schema(), "A result of each trajectory"),
)
def read_results(request: KeyRequest, slug: str, pk: int, problems: bool = False) -> StreamingHttpResponse:
    """JSON lines in the order of the trajectories, what there is so far. problems: only those without a result."""
    return StreamedLines(result_lines(_job(request, slug, pk), problems=problems))


@router.post(
    _ONE + "/pause",
    response=BulkJobOut,
    operation_id="pause_bulk_job",
    summary="Pause a bulk job",
    openapi_extra=_TRAIN,
)
def pause(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    """Chunks that workers have begun are finished."""
    job = _job(request, slug, pk)
    services.pause_bulk_job(job=job, by=request.auth)
    return bulk_job_out(job)


@router.post(
    _ONE + "/resume",
    response=BulkJobOut,
    operation_id="resume_bulk_job",
    summary="Resume a bulk job",
    openapi_extra=_TRAIN,
)
def resume(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    """One that is paused or failed."""
    job = _job(request, slug, pk)
    services.resume_bulk_job(job=job, by=request.auth)
    return bulk_job_out(job)


@router.post(
    _ONE + "/retry",
    response=BulkJobOut,
    operation_id="retry_bulk_job",
    summary="Retry the problems of a bulk job",
    openapi_extra=_TRAIN,
)
def retry(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    """Items whose result is a problem are worked on again."""
    job = _job(request, slug, pk)
    services.retry_problems(job=job, by=request.auth)
    return bulk_job_out(job)


@router.post(
    _ONE + "/cancel",
    response=BulkJobOut,
    operation_id="cancel_bulk_job",
    summary="Cancel a bulk job",
    openapi_extra=_TRAIN,
)
def cancel(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    """It cannot be resumed; the results so far are kept."""
    job = _job(request, slug, pk)
    services.cancel_bulk_job(job=job, by=request.auth)
    return bulk_job_out(job)


def bulk_job_out(job: BulkJob) -> dict[str, Any]:
    now = job_progress(job)
    return {
        "id": job.pk,
        "number": job.number,
        "work": job.work,
        "model": None if job.model is None else str(job.model),
        "judge": None if job.judge is None else job.judge.name,
        "induction": job.induction_id,
        "endpoint": None if job.revision is None else str(job.revision),
        "filter": job.query,
        "steps": job.with_steps,
        "state": job.state,
        "error": job.error,
        "progress": {"done": now.done, "total": job.item_count, "note": f"{now.per_second:,.1f} items/s"},
        "items": job.item_count,
        "done": now.done,
        "problems": now.problems,
        "missing": now.missing,
        "tokens": now.tokens,
        "failed_chunks": now.failed_chunks,
        "per_second": now.per_second,
        "tokens_per_second": now.tokens_per_second,
        "seconds_left": now.seconds_left,
        "created": job.created_at,
        "finished": job.finished_at,
    }


def _named(project: Project, body: BulkEstimateIn) -> dict[str, Any]:
    return {
        "project": project,
        "work": body.work,
        "filter": body.filter,
        "model": model_named(body.model, project=project) if body.model else None,
        "judge": get_judge_by_name(project, body.judge) if body.judge else None,
        "induction": get_induction(project, body.induction) if body.induction is not None else None,
        "endpoint": endpoint_of(project, body.endpoint) if body.endpoint else None,
    }


def _job(request: KeyRequest, slug: str, pk: int) -> BulkJob:
    return get_bulk_job(project_of_key(request.auth, slug, Scope.TRAIN), pk)
