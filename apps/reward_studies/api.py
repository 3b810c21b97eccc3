"""Reward studies over the JSON API."""

from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Field, Router, Schema, Status

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.core.http.api_schemas import Cursor, JobProgress, JobStateName, JsonObject, Limit, StrictBody
from apps.core.http.api_scopes import needs
from apps.core.jobs.job_queue import request_cancel
from apps.reward_studies import services
from apps.reward_studies.models import RewardStudy
from apps.reward_studies.selectors import get_reward_study
from apps.reward_studies.selectors import list_reward_studies as studies_of
from apps.reward_studies.services import (
    DEFAULT_SAMPLE,
    MAX_SAMPLE,
    FeedbackChoice,
    PenaltyChoice,
    StudyOptions,
)
from apps.rewards.item_schemas import EndpointSpecDocument
from apps.rewards.selectors import endpoint_of

router = Router()
_ADMIN = needs(Scope.ADMIN)
_ONE = "/projects/{slug}/reward-studies/{int:pk}"
StudyKind = Literal["weights", "analysis"]


class RewardStudyIn(StrictBody):
    kind: StudyKind
    endpoint: str | None = Field(None, description="whose active revision is studied, without a spec")
    spec: EndpointSpecDocument | None = Field(None, description="as for PUT endpoints")
    filter: str = Field("", description="stored trajectories, as in the explorer's address; empty for all")
    dataset: str = Field("", description="a dataset version, such as first@1; instead of a filter")
    campaign: str = Field("", description="the name of a campaign; instead of a filter")
    sample: int = Field(
        DEFAULT_SAMPLE, ge=1, le=MAX_SAMPLE, description="trajectories that are scored at most"
    )
    feedback: FeedbackChoice = Field("auto", description="what weights are fitted to")
    penalty: PenaltyChoice = "l1"
    allow_negative: bool = Field(False, description="whether a weight may be below 0")
    probes: bool = Field(True, description="of an analysis: whether changed copies are scored too")


FittedSpec = Annotated[JsonObject, Field(description="of weights: the spec with those that were fitted")]


class RewardStudyOut(Schema):
    id: int
    number: int = Field(description="within the project")
    kind: StudyKind
    endpoint: str | None
    source: JsonObject = Field(description="filter, dataset or campaign")
    options: JsonObject = Field(description="what it was started with: method, sample, probes")
    spec: JsonObject = Field(description="the components and transforms it is about")
    state: JobStateName
    progress: JobProgress
    error: str
    result: JsonObject = Field(description="once it has succeeded: docs/reward-design.md describes it")
    fitted_spec: FittedSpec | None
    created: datetime
    finished: datetime | None


class RewardStudyPage(Schema):
    items: list[RewardStudyOut]
    next: str | None


@router.get(
    "/projects/{slug}/reward-studies",
    response=RewardStudyPage,
    summary="List reward studies",
    openapi_extra=_ADMIN,
)
def list_reward_studies(
    request: KeyRequest, slug: str, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> dict[str, Any]:
    """Newest first."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    page, following = paginate(studies_of(project), cursor=cursor, limit=limit)
    return {"items": [reward_study_out(study) for study in page], "next": following}


@router.post(
    "/projects/{slug}/reward-studies",
    response={201: RewardStudyOut},
    summary="Fit weights of components, or analyse a reward",
    openapi_extra=_ADMIN,
)
def start_reward_study(request: KeyRequest, slug: str, body: RewardStudyIn) -> Status:
    """`weights`: of the components of a spec, fitted to comparisons, ratings or outcomes. `analysis`: what a reward is
    made of, where components conflict, and how much reward each hacking probe gains."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    study = services.start_reward_study(
        project=project,
        kind=body.kind,
        spec=body.spec,
        endpoint=endpoint_of(project, body.endpoint) if body.endpoint else None,
        filter=body.filter,
        dataset=body.dataset,
        campaign=body.campaign,
        options=StudyOptions(
            sample=body.sample,
            feedback=body.feedback,
            penalty=body.penalty,
            allow_negative=body.allow_negative,
            probes=body.probes,
        ),
        by=request.auth,
    )
    return Status(201, reward_study_out(study))


@router.get(
    _ONE,
    response=RewardStudyOut,
    operation_id="get_reward_study",
    summary="A reward study",
    openapi_extra=_ADMIN,
)
def read_reward_study(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    return reward_study_out(_study(request, slug, pk))


@router.post(
    _ONE + "/cancel",
    response=RewardStudyOut,
    operation_id="cancel_reward_study",
    summary="Cancel a reward study",
    openapi_extra=_ADMIN,
)
def cancel(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    study = _study(request, slug, pk)
    request_cancel(study)
    return reward_study_out(study)


@router.delete(
    _ONE,
    response={204: None},
    operation_id="delete_reward_study",
    summary="Delete a reward study that has ended",
    openapi_extra=_ADMIN,
)
def delete(request: KeyRequest, slug: str, pk: int) -> Status:
    services.delete_reward_study(study=_study(request, slug, pk), by=request.auth)
    return Status(204, None)


def reward_study_out(study: RewardStudy) -> dict[str, Any]:
    parts = study.result.get("components", [])
    is_fitted = study.kind == RewardStudy.Kind.WEIGHTS and any(part["weight"] for part in parts)
    return {
        "id": study.pk,
        "number": study.number,
        "kind": study.kind,
        "endpoint": study.endpoint.name if study.endpoint else None,
        "source": study.source,
        "options": study.options,
        "spec": study.spec,
        "state": study.state,
        "progress": study.progress,
        "error": study.error,
        "result": study.result,
        "fitted_spec": services.spec_with_weights(study) if is_fitted else None,
        "created": study.created_at,
        "finished": study.finished_at,
    }


def _study(request: KeyRequest, slug: str, pk: int) -> RewardStudy:
    return get_reward_study(project_of_key(request.auth, slug, Scope.ADMIN), pk)
