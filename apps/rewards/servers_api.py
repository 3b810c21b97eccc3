"""Servers that compute models, over the JSON API: replicas are added, drained and removed."""

from dataclasses import asdict
from typing import Any

from ninja import Field, Router, Schema, Status

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Project, Scope
from apps.core.http.api_scopes import needs
from apps.rewards import server_services
from apps.rewards.selectors import model_server, server_replica
from apps.rewards.server_states import server_views

router = Router()


class ReplicaIn(Schema):
    """address: `http://host:port`, or `dns+http://name:port` for a replica at each address of the name. key: sent as a
    bearer token; stored encrypted, never returned."""

    address: str
    key: str = ""


class DrainIn(Schema):
    draining: bool = True


class ReplicaOut(Schema):
    id: int
    server: str
    address: str
    draining: bool


class ReplicaStateOut(Schema):
    """id: null for a server of the operator. state: `serving`, `out`, `other model`, `draining` or `unknown`, with the
    reason. Counts since the processes of the reward service began; p50, p99: seconds of a batch."""

    id: int | None
    address: str
    draining: bool
    state: str
    reason: str
    model: str
    dialect: str
    outstanding_tokens: int
    requests: int
    errors: int
    tokens: int
    tokens_per_second: float | None
    p50: float | None
    p99: float | None


class ServerOut(Schema):
    name: str
    operator: bool = Field(description="whether TOUCHSTONE_VLLM_SERVERS names it")
    replicas: list[ReplicaStateOut]


class ServerList(Schema):
    """processes: of the reward service, that answered."""

    items: list[ServerOut]
    processes: int


@router.get(
    "/projects/{slug}/servers",
    response=ServerList,
    summary="Servers that compute models, with the state of their replicas",
    openapi_extra=needs(Scope.ADMIN),
)
def list_model_servers(request: KeyRequest, slug: str) -> dict[str, Any]:
    views, processes = server_views(_project(request, slug))
    items = []
    for view in views:
        replicas = []
        for replica in view.replicas:
            fields = asdict(replica)
            replicas.append(
                fields
                | {
                    "id": fields["pk"],
                    "draining": fields["is_draining"],
                    "outstanding_tokens": fields["outstanding"],
                }
            )
        items.append({"name": view.name, "operator": view.is_operators, "replicas": replicas})
    return {"items": items, "processes": processes}


@router.post(
    "/projects/{slug}/servers/{name}/replicas",
    response={201: ReplicaOut},
    summary="Add a replica; the server is created if new",
    openapi_extra=needs(Scope.ADMIN),
)
def add_server_replica(request: KeyRequest, slug: str, name: str, body: ReplicaIn) -> Status[dict[str, Any]]:
    replica = server_services.add_replica(
        project=_project(request, slug), server=name, address=body.address, key=body.key, by=request.auth
    )
    return Status(201, _replica(replica))


@router.post(
    "/projects/{slug}/servers/{name}/replicas/{int:pk}/drain",
    response=ReplicaOut,
    summary="Drain a replica, or resume it",
    openapi_extra=needs(Scope.ADMIN),
)
def drain_server_replica(request: KeyRequest, slug: str, name: str, pk: int, body: DrainIn) -> dict[str, Any]:
    """It answers what it was sent and gets no new batches. `{"draining": false}` resumes it."""
    replica = server_replica(_project(request, slug), pk, server=name)
    return _replica(server_services.set_draining(replica=replica, is_draining=body.draining, by=request.auth))


@router.delete(
    "/projects/{slug}/servers/{name}/replicas/{int:pk}",
    response={204: None},
    summary="Remove a replica",
    openapi_extra=needs(Scope.ADMIN),
)
def remove_server_replica(request: KeyRequest, slug: str, name: str, pk: int) -> Status[None]:
    replica = server_replica(_project(request, slug), pk, server=name)
    server_services.remove_replica(replica=replica, by=request.auth)
    return Status(204, None)


@router.delete(
    "/projects/{slug}/servers/{name}",
    response={204: None},
    summary="Delete a server",
    openapi_extra=needs(Scope.ADMIN),
)
def delete_model_server(request: KeyRequest, slug: str, name: str) -> Status[None]:
    """409 where an endpoint serves a model by it."""
    server_services.delete_server(server=model_server(_project(request, slug), name), by=request.auth)
    return Status(204, None)


def _project(request: KeyRequest, slug: str) -> Project:
    return project_of_key(request.auth, slug, Scope.ADMIN)


def _replica(replica: Any) -> dict[str, Any]:
    return {
        "id": replica.pk,
        "server": replica.server.name,
        "address": replica.address,
        "draining": replica.is_draining,
    }
