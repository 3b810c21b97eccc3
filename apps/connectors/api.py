"""Connectors over the JSON API."""

from datetime import datetime
from typing import Annotated, Any

from ninja import Field, Router, Schema, Status

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope
from apps.connectors import services
from apps.connectors.models import Connector, ConnectorRun
from apps.core.errors import NotFound
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.core.http.api_schemas import Cursor, JobProgress, Limit, StrictBody, left_out
from apps.core.http.api_scopes import needs
from apps.core.http.document_types import choices
from apps.core.jobs import job_queue

router = Router()
_ADMIN = needs(Scope.ADMIN)


ConnectorState = Annotated[Connector.State, choices(Connector.State)]
RunDirection = Annotated[ConnectorRun.Direction, choices(ConnectorRun.Direction)]


class ConnectorIn(StrictBody):
    kind: str
    name: str
    address: str = ""
    username: str = Field("", description="public key, access key or user name, by the kind")
    secret: str = Field("", description="secret key, token or password; never returned")
    options: dict[str, str] = Field(default_factory=dict)
    settle_minutes: int = 5
    overlap_minutes: int = 60
    every_minutes: int | None = Field(None, description="null: runs on demand only")
    push_endpoint: str = Field("", description="endpoint whose rewards are pushed with the feedback")
    push_after_pull: bool = Field(False, description="push scores after each pull that succeeded")


class ConnectorChange(StrictBody):
    """Fields that are left out stay as they are."""

    name: str = left_out()
    address: str = left_out()
    username: str = left_out()
    secret: str = left_out()
    options: dict[str, str] = left_out()
    settle_minutes: int = left_out()
    overlap_minutes: int = left_out()
    every_minutes: int | None = left_out(description="null: runs on demand only")
    push_endpoint: str = left_out()
    push_after_pull: bool = left_out()
    state: ConnectorState = left_out()


class ConnectorOut(Schema):
    id: int
    name: str
    kind: str
    address: str
    username: str
    has_secret: bool
    options: dict[str, str]
    settle_minutes: int
    overlap_minutes: int
    every_minutes: int | None
    push_endpoint: str
    push_after_pull: bool
    state: str
    next_run: datetime | None
    last_run: datetime | None
    last_error: str
    created: datetime


class ConnectorPage(Schema):
    items: list[ConnectorOut]
    next: str | None


class Refused(Schema):
    source: str = Field(description="id of the trace or file at the peer")
    line: int
    pointer: str | None
    message: str


class ConnectorRunIn(StrictBody):
    direction: RunDirection = ConnectorRun.Direction.PULL


class ConnectorRunOut(Schema):
    id: int
    connector: int
    direction: str
    state: str
    error: str
    progress: JobProgress
    documents: int
    created: int
    duplicates: int
    updated: int
    waiting: int = Field(description="traces that were not quiet yet: the next run asks for them again")
    rejected: list[Refused]
    rejected_count: int
    pushed: int = Field(description="scores that were sent")
    unchanged: int = Field(description="scores that the peer has already")
    started: datetime | None
    finished: datetime | None


class ConnectorRunPage(Schema):
    items: list[ConnectorRunOut]
    next: str | None


@router.get(
    "/projects/{slug}/connectors", response=ConnectorPage, summary="List connectors", openapi_extra=_ADMIN
)
def list_connectors(
    request: KeyRequest, slug: str, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> dict[str, Any]:
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    page, following = paginate(Connector.objects.filter(project=project), cursor=cursor, limit=limit)
    return {"items": [connector_out(row) for row in page], "next": following}


@router.post(
    "/projects/{slug}/connectors",
    response={201: ConnectorOut},
    summary="Create a connector",
    openapi_extra=_ADMIN,
)
def create_connector(request: KeyRequest, slug: str, body: ConnectorIn) -> Status:
    """kind: langfuse, phoenix, mlflow, ...; docs/connectors.md lists its options."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    values = body.model_dump(exclude={"kind", "secret"})
    connector = services.create_connector(
        project=project,
        kind=body.kind,
        spec=services.ConnectorSpec(**values),
        secret=body.secret,
        by=request.auth,
    )
    return Status(201, connector_out(connector))


@router.get(
    "/projects/{slug}/connectors/{int:pk}",
    response=ConnectorOut,
    operation_id="get_connector",
    summary="A connector",
    openapi_extra=_ADMIN,
)
def read_connector(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    return connector_out(_connector(request, slug, pk))


@router.patch(
    "/projects/{slug}/connectors/{int:pk}",
    response=ConnectorOut,
    summary="Change a connector",
    openapi_extra=_ADMIN,
)
def change_connector(request: KeyRequest, slug: str, pk: int, body: ConnectorChange) -> dict[str, Any]:
    connector = _connector(request, slug, pk)
    given = body.model_dump(exclude_unset=True)
    state, secret = given.pop("state", None), given.pop("secret", None)
    if given or secret:
        connector = services.update_connector(
            connector=connector,
            spec=services.changed_spec(connector, given),
            secret=secret or "",
            by=request.auth,
        )
    if state is not None:
        services.set_state(connector=connector, state=state, by=request.auth)
        connector.refresh_from_db()
    return connector_out(connector)


@router.delete(
    "/projects/{slug}/connectors/{int:pk}",
    response={204: None},
    summary="Delete a connector",
    openapi_extra=_ADMIN,
)
def delete_connector(request: KeyRequest, slug: str, pk: int) -> Status:
    services.delete_connector(connector=_connector(request, slug, pk), by=request.auth)
    return Status(204, None)


@router.get(
    "/projects/{slug}/connectors/{int:pk}/runs",
    response=ConnectorRunPage,
    operation_id="list_connector_runs",
    summary="List runs of a connector",
    openapi_extra=_ADMIN,
)
def list_runs(
    request: KeyRequest, slug: str, pk: int, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> dict[str, Any]:
    connector = _connector(request, slug, pk)
    page, following = paginate(ConnectorRun.objects.filter(connector=connector), cursor=cursor, limit=limit)
    return {"items": [run_out(run) for run in page], "next": following}


@router.post(
    "/projects/{slug}/connectors/{int:pk}/runs",
    response={201: ConnectorRunOut},
    operation_id="start_connector_run",
    summary="Start a run of a connector",
    openapi_extra=_ADMIN,
)
def start_run(request: KeyRequest, slug: str, pk: int, body: ConnectorRunIn | None = None) -> Status:
    """A pull, unless the body has the direction `push`."""
    direction = body.direction if body is not None else ConnectorRun.Direction.PULL
    run = services.start_run(connector=_connector(request, slug, pk), direction=direction, by=request.auth)
    return Status(201, run_out(run))


@router.get(
    "/projects/{slug}/connectors/{int:pk}/runs/{int:run}",
    response=ConnectorRunOut,
    operation_id="get_connector_run",
    summary="A run of a connector",
    openapi_extra=_ADMIN,
)
def read_run(request: KeyRequest, slug: str, pk: int, run: int) -> dict[str, Any]:
    return run_out(_run(request, slug, pk, run))


@router.post(
    "/projects/{slug}/connectors/{int:pk}/runs/{int:run}/cancel",
    response=ConnectorRunOut,
    operation_id="cancel_connector_run",
    summary="Cancel a run of a connector",
    openapi_extra=_ADMIN,
)
def cancel_run(request: KeyRequest, slug: str, pk: int, run: int) -> dict[str, Any]:
    found = _run(request, slug, pk, run)
    job_queue.request_cancel(found)
    return run_out(found)


def connector_out(connector: Connector) -> dict[str, Any]:
    return {
        "id": connector.pk,
        "name": connector.name,
        "kind": connector.kind,
        "address": connector.address,
        "username": connector.username,
        "has_secret": bool(connector.secret),
        "options": connector.options,
        "settle_minutes": connector.settle_minutes,
        "overlap_minutes": connector.overlap_minutes,
        "every_minutes": connector.every_minutes,
        "push_endpoint": connector.push_endpoint,
        "push_after_pull": connector.push_after_pull,
        "state": connector.state,
        "next_run": connector.next_run_at,
        "last_run": connector.last_run_at,
        "last_error": connector.last_error,
        "created": connector.created_at,
    }


def run_out(run: ConnectorRun) -> dict[str, Any]:
    counts = ("documents", "created", "duplicates", "updated", "waiting", "pushed", "unchanged")
    return {
        "id": run.pk,
        "connector": run.connector_id,
        "direction": run.direction,
        "state": run.state,
        "error": run.error,
        "progress": run.progress,
        **{name: getattr(run, name) for name in counts},
        "rejected": run.rejected,
        "rejected_count": run.rejected_count,
        "started": run.started_at,
        "finished": run.finished_at,
    }


def _connector(request: KeyRequest, slug: str, pk: int) -> Connector:
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    connector = Connector.objects.select_related("project").filter(project=project, pk=pk).first()
    if connector is None:
        raise NotFound(f"There is no connector {pk} in this project.")
    return connector


def _run(request: KeyRequest, slug: str, pk: int, run: int) -> ConnectorRun:
    found = ConnectorRun.objects.filter(connector=_connector(request, slug, pk), pk=run).first()
    if found is None:
        raise NotFound(f"There is no run {run} of this connector.")
    return found
