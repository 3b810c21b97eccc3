"""Hindsight tasks over the JSON API."""

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema, Status

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.core.http.api_schemas import Cursor, JsonObject, Limit, StrictBody
from apps.core.http.api_scopes import needs
from apps.core.jobs.job_queue import request_cancel
from apps.hindsight import selectors, services
from apps.hindsight.kind import DEFAULT_TRAJECTORIES, HINDSIGHT, MAX_TRAJECTORIES, HindsightOptions
from apps.hindsight.models import HindsightProposal, HindsightTask
from apps.llm.selectors import get_llm_connection
from apps.proposals.api_parts import ProposalJobOut, ProposedStateName, proposal_job_out
from apps.proposals.services import get_job
from workers.hindsight.relabelled import LONGEST_TASK

router = Router()
_ADMIN = needs(Scope.ADMIN)
_DECISION = needs(Scope.ADMIN, person=True)
_TASK = "/projects/{slug}/hindsight-tasks/{int:pk}"
_JOB = "/projects/{slug}/hindsight-proposals/{int:pk}"


class HindsightTaskIn(StrictBody):
    task: str = Field(min_length=1, max_length=LONGEST_TASK, description="what the trajectory did, as a task")


class HindsightTaskOut(Schema):
    id: int
    trajectory: int
    asked: str = Field(description="the instruction of the trajectory's task")
    task: str = Field(description="what the trajectory did, as a task")
    evidence: list[int] = Field(description="steps that the language model names for it")
    accepted: str = Field(description="the text that is used: accepted last, and not rejected; else empty")
    state: ProposedStateName
    changed: datetime
    decided: datetime | None = Field(description="when a person accepted or rejected it")


class HindsightTaskPage(Schema):
    items: list[HindsightTaskOut]
    next: str | None


class HindsightProposalIn(StrictBody):
    llm_connection: str = Field(description="its name, on the page LLM connections")
    filter: str = Field("", description="of trajectories; empty for all")
    most: int = Field(DEFAULT_TRAJECTORIES, ge=1, le=MAX_TRAJECTORIES, description="trajectories, the newest")


class HindsightProposalOut(ProposalJobOut):
    options: JsonObject = Field(description="what it was started with: filter, most")
    trajectories: int
    result: JsonObject = Field(
        description="usage, prompts; problems: why a trajectory got no text, by its id"
    )


@router.get(
    "/projects/{slug}/hindsight-tasks",
    response=HindsightTaskPage,
    summary="List hindsight tasks",
    openapi_extra=_ADMIN,
)
def list_hindsight_tasks(
    request: KeyRequest,
    slug: str,
    state: ProposedStateName | None = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> dict[str, Any]:
    """Newest first."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    page, following = paginate(
        selectors.list_hindsight_tasks(project, state or ""), cursor=cursor, limit=limit
    )
    return {"items": [hindsight_task_out(own) for own in page], "next": following}


@router.get(
    _TASK,
    response=HindsightTaskOut,
    operation_id="get_hindsight_task",
    summary="The hindsight task of a trajectory",
    openapi_extra=_ADMIN,
)
def read_hindsight_task(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    return hindsight_task_out(_own(request, slug, pk))


@router.put(
    _TASK,
    response=HindsightTaskOut,
    operation_id="edit_hindsight_task",
    summary="Edit a hindsight task",
    openapi_extra=_ADMIN,
)
def edit_hindsight_task(request: KeyRequest, slug: str, pk: int, body: HindsightTaskIn) -> dict[str, Any]:
    """It waits for a person again; what was accepted before is used until then."""
    own = services.edit_hindsight_task(own=_own(request, slug, pk), text=body.task, by=request.auth)
    return hindsight_task_out(own)


@router.post(
    _TASK + "/accept",
    response=HindsightTaskOut,
    operation_id="accept_hindsight_task",
    summary="Accept a hindsight task",
    openapi_extra=_DECISION,
)
def accept_hindsight_task(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    """The trajectory has reached it from now on."""
    own = services.accept_hindsight_task(own=_own(request, slug, pk), by=request.auth)
    return hindsight_task_out(own)


@router.post(
    _TASK + "/reject",
    response=HindsightTaskOut,
    operation_id="reject_hindsight_task",
    summary="Reject a hindsight task",
    openapi_extra=_DECISION,
)
def reject_hindsight_task(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    own = services.reject_hindsight_task(own=_own(request, slug, pk), by=request.auth)
    return hindsight_task_out(own)


@router.post(
    "/projects/{slug}/hindsight-proposals",
    response={201: HindsightProposalOut},
    operation_id="propose_hindsight_tasks",
    summary="Have a language model write which tasks trajectories fulfilled",
    openapi_extra=_ADMIN,
)
def propose_hindsight_tasks(request: KeyRequest, slug: str, body: HindsightProposalIn) -> Status:
    """For trajectories that have none. A person has to accept each text before anything uses it."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    proposal = services.start_hindsight_proposal(
        project=project,
        llm_connection=get_llm_connection(project, body.llm_connection),
        options=HindsightOptions(**body.dict(exclude={"llm_connection"})),
        by=request.auth,
    )
    return Status(201, proposal_job_out(proposal))


@router.get(
    _JOB,
    response=HindsightProposalOut,
    operation_id="get_hindsight_proposal",
    summary="A proposal of hindsight tasks",
    openapi_extra=_ADMIN,
)
def read_hindsight_proposal(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    return proposal_job_out(_proposal(request, slug, pk))


@router.post(
    _JOB + "/cancel",
    response=HindsightProposalOut,
    operation_id="cancel_hindsight_proposal",
    summary="Cancel a proposal of hindsight tasks",
    openapi_extra=_ADMIN,
)
def cancel_hindsight_proposal(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    """Texts that were proposed so far stay."""
    proposal = _proposal(request, slug, pk)
    request_cancel(proposal)
    return proposal_job_out(proposal)


def hindsight_task_out(own: HindsightTask) -> dict[str, Any]:
    return {
        "id": own.pk,
        "trajectory": own.trajectory_id,
        "asked": own.trajectory.task.instruction,
        "task": own.text,
        "evidence": own.evidence,
        "accepted": own.accepted_text,
        "state": own.state,
        "changed": own.changed_at,
        "decided": own.decided_at,
    }


def _own(request: KeyRequest, slug: str, pk: int) -> HindsightTask:
    return selectors.get_hindsight_task(project_of_key(request.auth, slug, Scope.ADMIN), pk)


def _proposal(request: KeyRequest, slug: str, pk: int) -> HindsightProposal:
    return get_job(HINDSIGHT, project_of_key(request.auth, slug, Scope.ADMIN), pk)
