"""Reward programs over the JSON API."""

from datetime import datetime
from typing import Any, Literal

from ninja import Field, Router, Schema, Status

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.core.http.api_schemas import Cursor, JobProgress, JobStateName, JsonObject, Limit, StrictBody
from apps.core.http.api_scopes import needs
from apps.core.jobs.job_queue import request_cancel
from apps.llm.selectors import get_llm_connection
from apps.reward_programs import selectors, services
from apps.reward_programs.models import RewardProgramJob, RewardProgramVersion
from apps.reward_programs.services import DEFAULT_SAMPLE, MAX_SAMPLE, DraftOptions, DryRunOptions
from workers.programs.source import MOST_SECONDS

router = Router()
_ADMIN = needs(Scope.ADMIN)
_ONE = "/projects/{slug}/reward-programs/{int:pk}"
_JOB = "/projects/{slug}/reward-program-jobs/{int:pk}"


class RewardProgramIn(StrictBody):
    name: str = Field(max_length=60, description="of the program; a known one gets its next version")
    code: str = Field(description="defines reward(trajectory), and optionally step_rewards(trajectory)")
    note: str = ""


class RewardProgramOut(Schema):
    id: int
    name: str = Field(description="project/name@version, as `program` of a component names it")
    version: int
    code: str
    code_hash: str = Field(description="SHA-256 of the code")
    note: str
    origin: Literal["person", "draft"] = Field(description="whether a language model drafted it")
    created: datetime
    accepted: datetime | None = Field(description="when a person accepted it; null for a draft that waits")
    dry_run_passed: datetime | None
    deployable: bool = Field(description="whether an endpoint may use it: accepted, and a dry run passed")


class RewardProgramPage(Schema):
    items: list[RewardProgramOut]
    next: str | None


class DryRunIn(StrictBody):
    filter: str = Field("", description="stored trajectories, as in the explorer's address; empty for all")
    sample: int = Field(DEFAULT_SAMPLE, ge=1, le=MAX_SAMPLE, description="trajectories at most")
    seconds: float = Field(1.0, ge=0.01, le=MOST_SECONDS, description="for each trajectory at most")


class DraftIn(StrictBody):
    name: str = Field(max_length=60, description="of the program; a known one gets its next version")
    llm_connection: str = Field(description="its name, on the page LLM connections")
    task: str = Field(description="what the reward is to pay for")
    comments: str = Field("", description="of people on earlier code, one on each line")
    filter: str = Field("", description="trajectories that drafts are tried on, such as failing ones")
    revises: int | None = Field(None, description="the id of a version to revise by the comments")
    stored_comments: bool = Field(
        False, description="whether the newest comments stored on the trajectories of the filter count too"
    )
    excerpts: bool = Field(
        True,
        description="whether the critic reads short excerpts of trajectories, masked as the project masks",
    )


class RewardProgramJobOut(Schema):
    id: int
    number: int = Field(description="within the project")
    kind: Literal["dry_run", "draft"]
    program: str | None = Field(description="the version it tried, or drafted")
    options: JsonObject = Field(description="what it was started with")
    state: JobStateName
    progress: JobProgress
    error: str
    result: JsonObject = Field(
        description="of a dry run: passed, failed, values, failures; of a draft: attempts"
    )
    created: datetime
    finished: datetime | None


@router.get(
    "/projects/{slug}/reward-programs",
    response=RewardProgramPage,
    summary="List versions of reward programs",
    openapi_extra=_ADMIN,
)
def list_reward_programs(
    request: KeyRequest, slug: str, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> dict[str, Any]:
    """Newest first."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    page, following = paginate(selectors.list_reward_programs(project), cursor=cursor, limit=limit)
    return {"items": [reward_program_out(program) for program in page], "next": following}


@router.post(
    "/projects/{slug}/reward-programs",
    response={201: RewardProgramOut},
    summary="Store a version of a reward program",
    openapi_extra=_ADMIN,
)
def create_reward_program(request: KeyRequest, slug: str, body: RewardProgramIn) -> Status:
    """Versions do not change. An endpoint may use one after a dry run of it passed."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    program = services.create_reward_program(
        project=project, name=body.name, code=body.code, note=body.note, by=request.auth
    )
    return Status(201, reward_program_out(program))


@router.get(
    _ONE,
    response=RewardProgramOut,
    operation_id="get_reward_program",
    summary="A version of a reward program",
    openapi_extra=_ADMIN,
)
def read_reward_program(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    return reward_program_out(_program(request, slug, pk))


@router.delete(
    _ONE,
    response={204: None},
    operation_id="delete_reward_program",
    summary="Delete a version of a reward program",
    openapi_extra=_ADMIN,
)
def delete(request: KeyRequest, slug: str, pk: int) -> Status[None]:
    """Not one that an endpoint serves. Its number is not given again; earlier revisions of endpoints keep its code."""
    services.delete_reward_program(program=_program(request, slug, pk), by=request.auth)
    return Status(204, None)


@router.post(
    _ONE + "/accept",
    response=RewardProgramOut,
    operation_id="accept_reward_program",
    summary="Accept a draft of a reward program",
    openapi_extra=needs(Scope.ADMIN, person=True),
)
def accept(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    program = services.accept_reward_program(program=_program(request, slug, pk), by=request.auth)
    return reward_program_out(program)


@router.post(
    _ONE + "/dry-runs",
    response={201: RewardProgramJobOut},
    operation_id="dry_run_reward_program",
    summary="Run a reward program on stored trajectories",
    openapi_extra=_ADMIN,
)
def dry_run(request: KeyRequest, slug: str, pk: int, body: DryRunIn) -> Status:
    """It passes where every trajectory gets a value, the same with and without the others."""
    options = DryRunOptions(filter=body.filter, sample=body.sample, seconds=body.seconds)
    job = services.start_dry_run(program=_program(request, slug, pk), options=options, by=request.auth)
    return Status(201, reward_program_job_out(job))


@router.post(
    "/projects/{slug}/reward-program-drafts",
    response={201: RewardProgramJobOut},
    operation_id="draft_reward_program",
    summary="Have a language model draft a reward program",
    openapi_extra=_ADMIN,
)
def start_draft(request: KeyRequest, slug: str, body: DraftIn) -> Status:
    """Each draft is tried on stored trajectories and read by a critic; what they find is corrected. The result is a new
    version, which a person has to accept."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    job = services.start_draft(
        project=project,
        name=body.name,
        llm_connection=get_llm_connection(project, body.llm_connection),
        options=DraftOptions(
            task=body.task,
            comments=body.comments,
            filter=body.filter,
            revises=body.revises,
            stored_comments=body.stored_comments,
            excerpts=body.excerpts,
        ),
        by=request.auth,
    )
    return Status(201, reward_program_job_out(job))


@router.get(
    _JOB,
    response=RewardProgramJobOut,
    operation_id="get_reward_program_job",
    summary="A dry run or a draft of a reward program",
    openapi_extra=_ADMIN,
)
def read_job(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    return reward_program_job_out(_job(request, slug, pk))


@router.post(
    _JOB + "/cancel",
    response=RewardProgramJobOut,
    operation_id="cancel_reward_program_job",
    summary="Cancel a dry run or a draft",
    openapi_extra=_ADMIN,
)
def cancel(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    job = _job(request, slug, pk)
    request_cancel(job)
    return reward_program_job_out(job)


def reward_program_out(program: RewardProgramVersion) -> dict[str, Any]:
    return {
        "id": program.pk,
        "name": str(program),
        "version": program.version,
        "code": program.code,
        "code_hash": program.code_hash,
        "note": program.note,
        "origin": program.origin,
        "created": program.created_at,
        "accepted": program.accepted_at,
        "dry_run_passed": program.dry_run_passed_at,
        "deployable": program.deployable_since is not None,
    }


def reward_program_job_out(job: RewardProgramJob) -> dict[str, Any]:
    return {
        "id": job.pk,
        "number": job.number,
        "kind": job.kind,
        "program": str(job.program) if job.program else None,
        "options": job.options,
        "state": job.state,
        "progress": job.progress,
        "error": job.error,
        "result": job.result,
        "created": job.created_at,
        "finished": job.finished_at,
    }


def _program(request: KeyRequest, slug: str, pk: int) -> RewardProgramVersion:
    return selectors.get_reward_program(project_of_key(request.auth, slug, Scope.ADMIN), pk)


def _job(request: KeyRequest, slug: str, pk: int) -> RewardProgramJob:
    return selectors.get_reward_program_job(project_of_key(request.auth, slug, Scope.ADMIN), pk)
