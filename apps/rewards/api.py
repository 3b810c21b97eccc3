"""Endpoints over the JSON API: what is deployed, new specs, releases and rollback."""

from typing import Annotated, Any

from ninja import Body, Router

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope
from apps.core.errors import NotFound
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.core.http.api_schemas import Cursor, Limit
from apps.core.http.api_scopes import needs
from apps.rewards import services
from apps.rewards.endpoint_schemas import (
    CanaryIn,
    ChangedEndpointOut,
    DeployIn,
    EndpointOut,
    EndpointPage,
    EndpointReport,
    ReasonIn,
    ReleaseIn,
    ReleaseOut,
    RollbackIn,
    StandbyIn,
    SwitchOffIn,
    TrafficColumn,
    TrafficSpan,
    UsageOut,
)
from apps.rewards.item_schemas import EndpointSpecDocument
from apps.rewards.models import Endpoint, EndpointRevision, Release
from apps.rewards.selectors import (
    endpoint_of,
    endpoints_of,
    open_release,
    release_decision,
    revision_of,
    revisions_of,
)
from apps.rewards.specs import error_pointer
from apps.rewards.traffic import TrafficSummary, flag_days, traffic_of
from apps.rewards.usage import SUMS
from apps.training.selectors import model_named

router = Router()


@router.get(
    "/projects/{slug}/endpoints",
    response=EndpointPage,
    summary="List endpoints",
    openapi_extra=needs(Scope.ADMIN),
)
def list_endpoints(
    request: KeyRequest, slug: str, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> dict[str, Any]:
    """Newest first."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    page, following = paginate(endpoints_of(project), cursor=cursor, limit=limit)
    return {"items": [_endpoint(endpoint) for endpoint in page], "next": following}


@router.get(
    "/projects/{slug}/endpoints/{name}",
    response=EndpointReport,
    summary="An endpoint and its revisions",
    openapi_extra=needs(Scope.ADMIN),
)
def get_endpoint(request: KeyRequest, slug: str, name: str) -> dict[str, Any]:
    endpoint = endpoint_of(project_of_key(request.auth, slug, Scope.ADMIN), name)
    return _endpoint(endpoint) | {"revisions": [_revision(revision) for revision in revisions_of(endpoint)]}


@router.put(
    "/projects/{slug}/endpoints/{name}",
    response=ChangedEndpointOut,
    summary="A new revision: components and transforms",
    openapi_extra=needs(Scope.ADMIN),
)
def put_endpoint(
    request: KeyRequest,
    slug: str,
    name: str,
    spec: Annotated[EndpointSpecDocument, Body()],
    stage: str | None = None,
    share: float = 0.0,
    automatic: bool = False,
    reason: str = "",
) -> dict[str, Any]:
    """`{"components": [{"name", "model", "weight"}], "transforms": [{"type": "clip", "eta": 0}]}`. Created if new.

    `?stage=shadow`, or `?stage=canary&share=0.1`: released in stages, instead of immediately. `?stage=standby`: loaded
    and kept warm until it is promoted. `?reason=`: required where a check of a new model failed (422 says which).
    """
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    revision = services.put_spec(
        project=project,
        endpoint_name=name,
        spec=spec,
        by=request.auth,
        release_options=_release_options(stage, share, automatic),
        reason=reason,
    )
    return _endpoint(revision.endpoint) | {"revision": _revision(revision)}


@router.post(
    "/projects/{slug}/endpoints/{name}/deploy",
    response=ChangedEndpointOut,
    summary="Deploy a model",
    openapi_extra=needs(Scope.ADMIN),
)
def deploy_model(request: KeyRequest, slug: str, name: str, body: DeployIn) -> dict[str, Any]:
    """Serve the active revision's spec with this model in place of its model; the endpoint is created if new.

    Where the model is no better than chance, or another check of its report failed, 422 says so unless there is a
    `reason`.
    """
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    release_options = _release_options(body.stage, body.share, body.automatic)
    with error_pointer("/model"):
        model = model_named(body.model, project=project)
    revision = services.deploy(
        model=model,
        endpoint_name=name,
        project=project,
        by=request.auth,
        release_options=release_options,
        reason=body.reason,
    )
    return _endpoint(revision.endpoint) | {"revision": _revision(revision)}


@router.get(
    "/projects/{slug}/endpoints/{name}/usage",
    response=UsageOut,
    operation_id="get_endpoint_usage",
    summary="Usage, and scored items by flag",
    openapi_extra=needs(Scope.ADMIN),
)
def get_usage(
    request: KeyRequest, slug: str, name: str, span: TrafficSpan = "day", by: TrafficColumn = "version"
) -> dict[str, Any]:
    """`span`: day, week or month. `by`: version, caller, run or policy_version.

    `flags`: scored items with each flag, by version, with their share of the items of the version; `flags_by_day`: the
    same by day (UTC).
    """
    endpoint = endpoint_of(project_of_key(request.auth, slug, Scope.ADMIN), name)
    traffic = traffic_of(endpoint, span=span, by=by)
    return {
        "endpoint": endpoint.name,
        "span": span,
        "total": _summary(traffic.total),
        "by": {row.name: _summary(row) for row in traffic.rows},
        "not_listed": traffic.hidden,
        "flags": [
            {"flag": row.flag, "version": row.version, "items": row.items, "share": row.share / 100}
            for row in traffic.flags
        ],
        "flags_by_day": flag_days(endpoint, span=span),
    }


@router.post(
    "/projects/{slug}/endpoints/{name}/rollback",
    response=ChangedEndpointOut,
    operation_id="roll_back_endpoint",
    summary="Roll back to an earlier revision",
    openapi_extra=needs(Scope.ADMIN),
)
def rollback(request: KeyRequest, slug: str, name: str, body: RollbackIn | None = None) -> dict[str, Any]:
    """Without `to`, to the revision before the active one."""
    endpoint = endpoint_of(project_of_key(request.auth, slug, Scope.ADMIN), name)
    body = body or RollbackIn(reason="")
    revision = services.rollback(endpoint=endpoint, to=body.to, by=request.auth, reason=body.reason)
    return _endpoint(revision.endpoint) | {"revision": _revision(revision)}


@router.put(
    "/projects/{slug}/endpoints/{name}/standby",
    response=EndpointOut,
    summary="Keep a revision loaded and warm",
    openapi_extra=needs(Scope.ADMIN),
)
def set_standby(request: KeyRequest, slug: str, name: str, body: StandbyIn) -> dict[str, Any]:
    """It answers nothing until it is promoted. It needs its memory next to that of the active revision."""
    endpoint = endpoint_of(project_of_key(request.auth, slug, Scope.ADMIN), name)
    revision = None if body.revision is None else revision_of(endpoint, body.revision)
    return _endpoint(
        services.set_standby(endpoint=endpoint, revision=revision, by=request.auth, reason=body.reason)
    )


@router.post(
    "/projects/{slug}/endpoints/{name}/standby/promote",
    response=ChangedEndpointOut,
    summary="Make the standby revision the active one",
    openapi_extra=needs(Scope.ADMIN),
)
def promote_standby(request: KeyRequest, slug: str, name: str) -> dict[str, Any]:
    """What was active stands by then: promoting again rolls back."""
    endpoint = endpoint_of(project_of_key(request.auth, slug, Scope.ADMIN), name)
    revision = services.promote_standby(endpoint=endpoint, by=request.auth)
    return _endpoint(revision.endpoint) | {"revision": _revision(revision)}


@router.post(
    "/projects/{slug}/endpoints/{name}/switch-off",
    response=EndpointOut,
    operation_id="switch_endpoint_off",
    summary="Switch an endpoint off",
    openapi_extra=needs(Scope.ADMIN),
)
def switch_off(request: KeyRequest, slug: str, name: str, body: SwitchOffIn) -> dict[str, Any]:
    """Every request for a reward is answered with 503 and the reason, immediately."""
    endpoint = endpoint_of(project_of_key(request.auth, slug, Scope.ADMIN), name)
    return _endpoint(services.switch_off(endpoint=endpoint, reason=body.reason, by=request.auth))


@router.post(
    "/projects/{slug}/endpoints/{name}/switch-on",
    response=EndpointOut,
    operation_id="switch_endpoint_on",
    summary="Switch an endpoint on again",
    openapi_extra=needs(Scope.ADMIN),
)
def switch_on(request: KeyRequest, slug: str, name: str) -> dict[str, Any]:
    endpoint = endpoint_of(project_of_key(request.auth, slug, Scope.ADMIN), name)
    return _endpoint(services.switch_on(endpoint=endpoint, by=request.auth))


@router.get(
    "/projects/{slug}/endpoints/{name}/trial", include_in_schema=False, openapi_extra=needs(Scope.ADMIN)
)
@router.get(
    "/projects/{slug}/endpoints/{name}/release",
    response=ReleaseOut,
    summary="The current release and its state",
    openapi_extra=needs(Scope.ADMIN),
)
def get_release(request: KeyRequest, slug: str, name: str) -> dict[str, Any]:
    """The open release, else the one that ended last. The paths under `/trial` answer the same."""
    endpoint = endpoint_of(project_of_key(request.auth, slug, Scope.ADMIN), name)
    release = endpoint.releases.select_related("revision", "against").order_by("-started_at").first()
    if release is None:
        raise NotFound(f"The endpoint {name} has never had a release; start one with POST.")
    return _release(release)


@router.post(
    "/projects/{slug}/endpoints/{name}/trial", include_in_schema=False, openapi_extra=needs(Scope.ADMIN)
)
@router.post(
    "/projects/{slug}/endpoints/{name}/release",
    response=ReleaseOut,
    summary="Release a revision as a shadow or a canary",
    openapi_extra=needs(Scope.ADMIN),
)
def start_release(request: KeyRequest, slug: str, name: str, body: ReleaseIn) -> dict[str, Any]:
    endpoint = endpoint_of(project_of_key(request.auth, slug, Scope.ADMIN), name)
    revision = revision_of(endpoint, body.revision)
    options = services.ReleaseOptions(body.stage, body.share, body.rules, body.automatic)
    started = services.start_release(
        revision=revision, release_options=options, by=request.auth, reason=body.reason
    )
    return _release(started)


@router.post(
    "/projects/{slug}/endpoints/{name}/trial/canary",
    include_in_schema=False,
    openapi_extra=needs(Scope.ADMIN),
)
@router.post(
    "/projects/{slug}/endpoints/{name}/release/canary",
    response=ReleaseOut,
    operation_id="make_release_canary",
    summary="Make a release a canary, or change its share",
    openapi_extra=needs(Scope.ADMIN),
)
def make_canary(request: KeyRequest, slug: str, name: str, body: CanaryIn) -> dict[str, Any]:
    release = _open(request, slug, name)
    changed = services.make_canary(
        release=release, share=body.share, by=request.auth, deploy_reason=body.reason
    )
    return _release(changed)


@router.post(
    "/projects/{slug}/endpoints/{name}/trial/promote",
    include_in_schema=False,
    openapi_extra=needs(Scope.ADMIN),
)
@router.post(
    "/projects/{slug}/endpoints/{name}/release/promote",
    response=ChangedEndpointOut,
    operation_id="promote_release",
    summary="Make a release the active revision",
    openapi_extra=needs(Scope.ADMIN),
)
def promote(request: KeyRequest, slug: str, name: str, body: ReasonIn | None = None) -> dict[str, Any]:
    reason = body.reason if body else ""
    release = _open(request, slug, name)
    revision = services.promote_release(release=release, by=request.auth, reason=reason, deploy_reason=reason)
    return _endpoint(revision.endpoint) | {"revision": _revision(revision)}


@router.post(
    "/projects/{slug}/endpoints/{name}/trial/withdraw",
    include_in_schema=False,
    openapi_extra=needs(Scope.ADMIN),
)
@router.post(
    "/projects/{slug}/endpoints/{name}/release/rollback",
    response=ReleaseOut,
    summary="Roll a release back",
    openapi_extra=needs(Scope.ADMIN),
)
def roll_back_release(
    request: KeyRequest, slug: str, name: str, body: ReasonIn | None = None
) -> dict[str, Any]:
    reason = body.reason if body else ""
    release = _open(request, slug, name)
    return _release(services.roll_back_release(release=release, by=request.auth, reason=reason))


def _release_options(stage: str | None, share: float, automatic: bool) -> services.ReleaseOptions | None:
    return None if stage is None else services.ReleaseOptions(stage, share, automatic=automatic)


def _open(request: KeyRequest, slug: str, name: str) -> Release:
    release = open_release(endpoint_of(project_of_key(request.auth, slug, Scope.ADMIN), name))
    if release is None:
        raise NotFound(f"The endpoint {name} has no open release; start one first.")
    return release


def _release(release: Release) -> dict[str, Any]:
    verdict = release_decision(release) if release.is_open else None
    return {
        "revision": release.revision.number,
        "against": release.against.number,
        "stage": release.stage,
        "share": release.share,
        "automatic": release.automatic,
        "rules": release.rules,
        "reason": release.reason,
        "started": release.started_at,
        "ended": release.ended_at,
        "verdict": None if verdict is None else {"says": verdict.says, "reason": verdict.reason},
    }


def _summary(row: TrafficSummary) -> dict[str, Any]:
    """Counts as `usage.UsageTally` has them; rewards on the reward scale, milliseconds within the service."""
    counts = {name: getattr(row.tally, name) for name in SUMS if not name.startswith("reward_")}
    return counts | {
        "reward_mean": row.mean,
        "reward_std": row.deviation,
        "milliseconds_p50": row.p50,
        "milliseconds_p95": row.p95,
    }


def _endpoint(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "endpoint": endpoint.name,
        "project": endpoint.project.slug,
        "active": None if endpoint.active is None else endpoint.active.number,
        "standby": None if endpoint.standby is None else endpoint.standby.number,
        "spec": None if endpoint.active is None else endpoint.active.spec,
        "switched_off": endpoint.switched_off,
        "switched_off_reason": endpoint.switched_off_reason,
    }


def _revision(revision: EndpointRevision) -> dict[str, Any]:
    return {
        "number": revision.number,
        "spec": revision.spec,
        "reason": revision.reason,
        "created": revision.created_at,
    }
