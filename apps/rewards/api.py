"""Endpoints over the JSON API: what is deployed, a new spec, and the way back."""

from typing import Annotated, Any

from ninja import Body, Router, Schema

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope
from apps.core.api import DEFAULT_LIMIT, paginate
from apps.rewards import services
from apps.rewards.models import Endpoint, EndpointRevision
from apps.rewards.selectors import endpoint_of, endpoints_of, revisions_of

router = Router()


class RollbackIn(Schema):
    to: int | None = None


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
    request: KeyRequest, slug: str, name: str, spec: Annotated[dict[str, Any], Body()]
) -> dict[str, Any]:
    """`{"components": [{"name", "model", "weight"}], "transforms": [{"type": "clip", "eta": 0}]}`. Made if new."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    revision = services.put_spec(project=project, endpoint_name=name, spec=spec, by=request.auth)
    return _endpoint(revision.endpoint) | {"revision": _revision(revision)}


@router.post("/projects/{slug}/endpoints/{name}/rollback", summary="Back to an earlier revision")
def rollback(request: KeyRequest, slug: str, name: str, body: RollbackIn | None = None) -> dict[str, Any]:
    """Without `to`, to the revision before the active one."""
    endpoint = endpoint_of(project_of_key(request.auth, slug, Scope.ADMIN), name)
    revision = services.rollback(endpoint=endpoint, to=body.to if body else None, by=request.auth)
    return _endpoint(revision.endpoint) | {"revision": _revision(revision)}


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
