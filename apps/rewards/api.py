"""Endpoints over the JSON API: what is deployed, a new spec, and the way back."""

from typing import Annotated, Any

from ninja import Body, Router, Schema

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope
from apps.core.errors import NotFound
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.rewards import services
from apps.rewards.models import Endpoint, EndpointRevision, Trial
from apps.rewards.selectors import (
    endpoint_of,
    endpoints_of,
    open_trial,
    revision_of,
    revisions_of,
    verdict_of,
)

router = Router()


class RollbackIn(Schema):
    to: int | None = None


class TrialIn(Schema):
    """stage: shadow or canary. share: of what is asked that a canary answers. rules: see `trials.Rules`."""

    revision: int
    stage: str = "shadow"
    share: float = 0.0
    rules: dict[str, Any] = {}
    automatic: bool = False


class CanaryIn(Schema):
    share: float


class ReasonIn(Schema):
    reason: str = ""


@router.get("/projects/{slug}/endpoints", summary="The project's endpoints")
def list_endpoints(
    request: KeyRequest, slug: str, cursor: str | None = None, limit: int = DEFAULT_LIMIT
) -> dict[str, Any]:
    """Newest first."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    page, following = paginate(endpoints_of(project), cursor=cursor, limit=limit)
    return {"items": [_endpoint(one) for one in page], "next": following}


@router.get("/projects/{slug}/endpoints/{name}", summary="An endpoint and its revisions")
def get_endpoint(request: KeyRequest, slug: str, name: str) -> dict[str, Any]:
    endpoint = endpoint_of(project_of_key(request.auth, slug, Scope.ADMIN), name)
    return _endpoint(endpoint) | {"revisions": [_revision(one) for one in revisions_of(endpoint)]}


@router.put("/projects/{slug}/endpoints/{name}", summary="A new revision: components and transforms")
def put_endpoint(
    request: KeyRequest,
    slug: str,
    name: str,
    spec: Annotated[dict[str, Any], Body()],
    stage: str | None = None,
    share: float = 0.0,
    automatic: bool = False,
) -> dict[str, Any]:
    """`{"components": [{"name", "model", "weight"}], "transforms": [{"type": "clip", "eta": 0}]}`. Made if new.

    `?stage=shadow`, or `?stage=canary&share=0.1`: on trial beside what is active, rather than at once.
    """
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    beside = None if stage is None else services.Beside(stage, share, automatic=automatic)
    revision = services.put_spec(
        project=project, endpoint_name=name, spec=spec, by=request.auth, beside=beside
    )
    return _endpoint(revision.endpoint) | {"revision": _revision(revision)}


@router.post("/projects/{slug}/endpoints/{name}/rollback", summary="Back to an earlier revision")
def rollback(request: KeyRequest, slug: str, name: str, body: RollbackIn | None = None) -> dict[str, Any]:
    """Without `to`, to the revision before the active one."""
    endpoint = endpoint_of(project_of_key(request.auth, slug, Scope.ADMIN), name)
    revision = services.rollback(endpoint=endpoint, to=body.to if body else None, by=request.auth)
    return _endpoint(revision.endpoint) | {"revision": _revision(revision)}


@router.get("/projects/{slug}/endpoints/{name}/trial", summary="What is on trial, and how it stands")
def get_trial(request: KeyRequest, slug: str, name: str) -> dict[str, Any]:
    """The open trial, else the newest that ended."""
    endpoint = endpoint_of(project_of_key(request.auth, slug, Scope.ADMIN), name)
    trial = endpoint.trials.select_related("revision", "against").order_by("-started_at").first()
    if trial is None:
        raise NotFound(f"Nothing was ever on trial on {name}.")
    return _trial(trial)


@router.post("/projects/{slug}/endpoints/{name}/trial", summary="Try a revision beside the active one")
def start_trial(request: KeyRequest, slug: str, name: str, body: TrialIn) -> dict[str, Any]:
    endpoint = endpoint_of(project_of_key(request.auth, slug, Scope.ADMIN), name)
    revision = revision_of(endpoint, body.revision)
    beside = services.Beside(body.stage, body.share, body.rules, body.automatic)
    return _trial(services.start_trial(revision=revision, beside=beside, by=request.auth))


@router.post(
    "/projects/{slug}/endpoints/{name}/trial/canary", summary="Have it answer a share of what is asked"
)
def make_canary(request: KeyRequest, slug: str, name: str, body: CanaryIn) -> dict[str, Any]:
    return _trial(services.make_canary(trial=_open(request, slug, name), share=body.share, by=request.auth))


@router.post("/projects/{slug}/endpoints/{name}/trial/promote", summary="Have it answer everything")
def promote(request: KeyRequest, slug: str, name: str, body: ReasonIn | None = None) -> dict[str, Any]:
    reason = body.reason if body else ""
    revision = services.promote(trial=_open(request, slug, name), by=request.auth, reason=reason)
    return _endpoint(revision.endpoint) | {"revision": _revision(revision)}


@router.post("/projects/{slug}/endpoints/{name}/trial/withdraw", summary="End the trial")
def withdraw(request: KeyRequest, slug: str, name: str, body: ReasonIn | None = None) -> dict[str, Any]:
    reason = body.reason if body else ""
    return _trial(services.withdraw(trial=_open(request, slug, name), by=request.auth, reason=reason))


def _open(request: KeyRequest, slug: str, name: str) -> Trial:
    trial = open_trial(endpoint_of(project_of_key(request.auth, slug, Scope.ADMIN), name))
    if trial is None:
        raise NotFound(f"Nothing is on trial on {name}.")
    return trial


def _trial(trial: Trial) -> dict[str, Any]:
    verdict = verdict_of(trial) if trial.is_open else None
    return {
        "revision": trial.revision.number,
        "against": trial.against.number,
        "stage": trial.stage,
        "share": trial.share,
        "automatic": trial.automatic,
        "rules": trial.rules,
        "reason": trial.reason,
        "started": trial.started_at,
        "ended": trial.ended_at,
        "verdict": None if verdict is None else {"says": verdict.says, "reason": verdict.reason},
    }


def _endpoint(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "endpoint": endpoint.name,
        "project": endpoint.project.slug,
        "active": None if endpoint.active is None else endpoint.active.number,
        "spec": None if endpoint.active is None else endpoint.active.spec,
        "switched_off": endpoint.switched_off,
        "switched_off_reason": endpoint.switched_off_reason,
    }


def _revision(revision: EndpointRevision) -> dict[str, Any]:
    return {"number": revision.number, "spec": revision.spec, "created": revision.created_at}
