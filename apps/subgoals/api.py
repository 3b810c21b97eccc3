"""Subgoals of tasks over the JSON API."""

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
from apps.llm.selectors import get_llm_connection
from apps.proposals.api_parts import ProposalJobOut, ProposedStateName, proposal_job_out
from apps.proposals.services import get_job
from apps.subgoals import selectors, services
from apps.subgoals.kind import DEFAULT_TASKS, MAX_TASKS, SUBGOALS, ProposalOptions
from apps.subgoals.models import SubgoalProposal, TaskSubgoals
from workers.subgoals.subgoal_lists import LONGEST_GOAL, MOST_SUBGOALS

router = Router()
_ADMIN = needs(Scope.ADMIN)
_DECISION = needs(Scope.ADMIN, person=True)
_LIST = "/projects/{slug}/subgoals/{int:pk}"
_JOB = "/projects/{slug}/subgoal-proposals/{int:pk}"


class SubgoalBody(StrictBody):
    goal: str = Field("", max_length=LONGEST_GOAL, description="what is reached, for people")
    expression: str = Field(max_length=2000, description="RE2, found in a step once the subgoal is reached")
    weight: float = Field(1.0, gt=0, le=1000)


class SubgoalListIn(StrictBody):
    subgoals: list[SubgoalBody] = Field(max_length=MOST_SUBGOALS)


class SubgoalListOut(Schema):
    id: int
    task: str = Field(description="the id of the task")
    subgoals: list[SubgoalBody]
    state: ProposedStateName
    changed: datetime
    decided: datetime | None = Field(description="when a person accepted or rejected them")


class SubgoalListPage(Schema):
    items: list[SubgoalListOut]
    next: str | None


class SubgoalProposalIn(StrictBody):
    llm_connection: str = Field(description="its name, on the page LLM connections")
    filter: str = Field("", description="trajectories, whose tasks get subgoals; empty for all")
    most: int = Field(DEFAULT_TASKS, ge=1, le=MAX_TASKS, description="tasks")
    with_trajectories: bool = Field(
        True, description="whether the model reads up to two successful trajectories of each task"
    )


class SubgoalProposalOut(ProposalJobOut):
    options: JsonObject = Field(description="what it was started with: filter, most, with_trajectories")
    tasks: int
    result: JsonObject = Field(description="usage, prompts; problems: why a task got no list, by its key")


@router.get(
    "/projects/{slug}/subgoals",
    response=SubgoalListPage,
    summary="List subgoals of tasks",
    openapi_extra=_ADMIN,
)
def list_subgoals(
    request: KeyRequest,
    slug: str,
    state: ProposedStateName | None = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> dict[str, Any]:
    """Newest first."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    page, following = paginate(selectors.list_subgoals(project, state or ""), cursor=cursor, limit=limit)
    return {"items": [subgoal_list_out(own) for own in page], "next": following}


@router.get(
    _LIST,
    response=SubgoalListOut,
    operation_id="get_subgoals",
    summary="The subgoals of a task",
    openapi_extra=_ADMIN,
)
def read_subgoals(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    return subgoal_list_out(_own(request, slug, pk))


@router.put(
    _LIST,
    response=SubgoalListOut,
    operation_id="edit_subgoals",
    summary="Edit the subgoals of a task",
    openapi_extra=_ADMIN,
)
def edit(request: KeyRequest, slug: str, pk: int, body: SubgoalListIn) -> dict[str, Any]:
    """They wait for a person again; what was accepted before is used until then."""
    rows = [each.dict() for each in body.subgoals]
    return subgoal_list_out(
        services.edit_subgoals(own=_own(request, slug, pk), subgoals=rows, by=request.auth)
    )


@router.post(
    _LIST + "/accept",
    response=SubgoalListOut,
    operation_id="accept_subgoals",
    summary="Accept the subgoals of a task",
    openapi_extra=_DECISION,
)
def accept(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    """The component `subgoals` uses them from now on."""
    return subgoal_list_out(services.accept_subgoals(own=_own(request, slug, pk), by=request.auth))


@router.post(
    _LIST + "/reject",
    response=SubgoalListOut,
    operation_id="reject_subgoals",
    summary="Reject the subgoals of a task",
    openapi_extra=_DECISION,
)
def reject(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    return subgoal_list_out(services.reject_subgoals(own=_own(request, slug, pk), by=request.auth))


@router.post(
    "/projects/{slug}/subgoal-proposals",
    response={201: SubgoalProposalOut},
    operation_id="propose_subgoals",
    summary="Have a language model propose subgoals of tasks",
    openapi_extra=_ADMIN,
)
def propose(request: KeyRequest, slug: str, body: SubgoalProposalIn) -> Status:
    """For tasks that have none. A person has to accept each list before anything uses it."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    proposal = services.start_proposal(
        project=project,
        llm_connection=get_llm_connection(project, body.llm_connection),
        options=ProposalOptions(**body.dict(exclude={"llm_connection"})),
        by=request.auth,
    )
    return Status(201, proposal_job_out(proposal))


@router.get(
    _JOB,
    response=SubgoalProposalOut,
    operation_id="get_subgoal_proposal",
    summary="A proposal of subgoals",
    openapi_extra=_ADMIN,
)
def read_proposal(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    return proposal_job_out(_proposal(request, slug, pk))


@router.post(
    _JOB + "/cancel",
    response=SubgoalProposalOut,
    operation_id="cancel_subgoal_proposal",
    summary="Cancel a proposal of subgoals",
    openapi_extra=_ADMIN,
)
def cancel(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    """Lists that were proposed so far stay."""
    proposal = _proposal(request, slug, pk)
    request_cancel(proposal)
    return proposal_job_out(proposal)


def subgoal_list_out(own: TaskSubgoals) -> dict[str, Any]:
    return {
        "id": own.pk,
        "task": own.task.external_id,
        "subgoals": own.subgoals,
        "state": own.state,
        "changed": own.changed_at,
        "decided": own.decided_at,
    }


def _own(request: KeyRequest, slug: str, pk: int) -> TaskSubgoals:
    return selectors.get_subgoals(project_of_key(request.auth, slug, Scope.ADMIN), pk)


def _proposal(request: KeyRequest, slug: str, pk: int) -> SubgoalProposal:
    return get_job(SUBGOALS, project_of_key(request.auth, slug, Scope.ADMIN), pk)
