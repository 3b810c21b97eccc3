"""Endpoints over the JSON API: what is deployed, new specs, releases and rollback."""

from typing import Annotated, Any

from ninja import Body, Router, Schema

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope
from apps.core.errors import DomainError, NotFound
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.rewards import services
from apps.rewards.models import Endpoint, EndpointRevision, Release
from apps.rewards.selectors import (
    endpoint_of,
    endpoints_of,
    open_release,
    release_decision,
    revision_of,
    revisions_of,
)
from apps.rewards.traffic import BY, SPANS, TrafficSummary, flag_days, traffic_of
from apps.rewards.usage import SUMS

router = Router()


class RollbackIn(Schema):
    to: int | None = None


class ReleaseIn(Schema):
    """stage: shadow or canary. share: of what is asked that a canary answers. rules: see `releases.ReleaseRules`."""

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
    return {"items": [_endpoint(endpoint) for endpoint in page], "next": following}


@router.get("/projects/{slug}/endpoints/{name}", summary="An endpoint and its revisions")
def get_endpoint(request: KeyRequest, slug: str, name: str) -> dict[str, Any]:
    endpoint = endpoint_of(project_of_key(request.auth, slug, Scope.ADMIN), name)
    return _endpoint(endpoint) | {"revisions": [_revision(revision) for revision in revisions_of(endpoint)]}


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
    """`{"components": [{"name", "model", "weight"}], "transforms": [{"type": "clip", "eta": 0}]}`. Created if new.

    `?stage=shadow`, or `?stage=canary&share=0.1`: released in stages, instead of immediately.
    """
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    release_options = None if stage is None else services.ReleaseOptions(stage, share, automatic=automatic)
    revision = services.put_spec(
        project=project, endpoint_name=name, spec=spec, by=request.auth, release_options=release_options
    )
    return _endpoint(revision.endpoint) | {"revision": _revision(revision)}


@router.get("/projects/{slug}/endpoints/{name}/usage", summary="Usage, and scored items by flag")
def get_usage(
    request: KeyRequest, slug: str, name: str, span: str = "day", by: str = "version"
) -> dict[str, Any]:
    """`span`: day, week or month. `by`: version, caller, run or policy_version.

    `flags`: scored items with each flag, by version, with their share of the items of the version; `flags_by_day`: the
    same by day (UTC).
    """
    endpoint = endpoint_of(project_of_key(request.auth, slug, Scope.ADMIN), name)
    for value, known, at in ((span, SPANS, "/span"), (by, BY, "/by")):
        if value not in known:
            raise DomainError(f"{value[:60]!r} is none of {', '.join(known)}.", pointer=at)
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


@router.post("/projects/{slug}/endpoints/{name}/rollback", summary="Roll back to an earlier revision")
def rollback(request: KeyRequest, slug: str, name: str, body: RollbackIn | None = None) -> dict[str, Any]:
    """Without `to`, to the revision before the active one."""
    endpoint = endpoint_of(project_of_key(request.auth, slug, Scope.ADMIN), name)
    revision = services.rollback(endpoint=endpoint, to=body.to if body else None, by=request.auth)
    return _endpoint(revision.endpoint) | {"revision": _revision(revision)}


@router.get("/projects/{slug}/endpoints/{name}/trial", include_in_schema=False)
@router.get("/projects/{slug}/endpoints/{name}/release", summary="The current release and its state")
def get_release(request: KeyRequest, slug: str, name: str) -> dict[str, Any]:
    """The open release, else the one that ended last. The paths under `/trial` answer the same."""
    endpoint = endpoint_of(project_of_key(request.auth, slug, Scope.ADMIN), name)
    release = endpoint.releases.select_related("revision", "against").order_by("-started_at").first()
    if release is None:
        raise NotFound(f"The endpoint {name} has never had a release; start one with POST.")
    return _release(release)


@router.post("/projects/{slug}/endpoints/{name}/trial", include_in_schema=False)
@router.post(
    "/projects/{slug}/endpoints/{name}/release", summary="Release a revision as a shadow or a canary"
)
def start_release(request: KeyRequest, slug: str, name: str, body: ReleaseIn) -> dict[str, Any]:
    endpoint = endpoint_of(project_of_key(request.auth, slug, Scope.ADMIN), name)
    revision = revision_of(endpoint, body.revision)
    options = services.ReleaseOptions(body.stage, body.share, body.rules, body.automatic)
    return _release(services.start_release(revision=revision, release_options=options, by=request.auth))


@router.post("/projects/{slug}/endpoints/{name}/trial/canary", include_in_schema=False)
@router.post(
    "/projects/{slug}/endpoints/{name}/release/canary", summary="Make it a canary, or change its share"
)
def make_canary(request: KeyRequest, slug: str, name: str, body: CanaryIn) -> dict[str, Any]:
    release = _open(request, slug, name)
    return _release(services.make_canary(release=release, share=body.share, by=request.auth))


@router.post("/projects/{slug}/endpoints/{name}/trial/promote", include_in_schema=False)
@router.post("/projects/{slug}/endpoints/{name}/release/promote", summary="Make it the active revision")
def promote(request: KeyRequest, slug: str, name: str, body: ReasonIn | None = None) -> dict[str, Any]:
    reason = body.reason if body else ""
    release = _open(request, slug, name)
    revision = services.promote_release(release=release, by=request.auth, reason=reason)
    return _endpoint(revision.endpoint) | {"revision": _revision(revision)}


@router.post("/projects/{slug}/endpoints/{name}/trial/withdraw", include_in_schema=False)
@router.post("/projects/{slug}/endpoints/{name}/release/rollback", summary="Roll it back")
def roll_back_release(
    request: KeyRequest, slug: str, name: str, body: ReasonIn | None = None
) -> dict[str, Any]:
    reason = body.reason if body else ""
    release = _open(request, slug, name)
    return _release(services.roll_back_release(release=release, by=request.auth, reason=reason))


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
        "spec": None if endpoint.active is None else endpoint.active.spec,
        "switched_off": endpoint.switched_off,
        "switched_off_reason": endpoint.switched_off_reason,
    }


def _revision(revision: EndpointRevision) -> dict[str, Any]:
    return {"number": revision.number, "spec": revision.spec, "created": revision.created_at}
