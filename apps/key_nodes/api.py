"""Key nodes of tasks over the JSON API."""

from datetime import datetime
from typing import Annotated, Any

from ninja import Field, Query, Router, Schema, Status

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.core.http.api_schemas import Cursor, JsonObject, Limit, StrictBody
from apps.core.http.api_scopes import needs
from apps.key_nodes import selectors, services
from apps.key_nodes.models import KeyNodeCompletion, TaskKeyNodes
from apps.trajectories.models import Task
from apps.trajectories.selectors import require_trajectory
from workers.schema.key_nodes import MOST_KEY_NODES

router = Router()
_READ, _WRITE = needs(Scope.FEEDBACK_READ), needs(Scope.FEEDBACK_WRITE)
_LIST = "/projects/{slug}/key-nodes/{int:pk}"
NodeJson = Annotated[
    JsonObject,
    Field(description="name, and at least one of tools (with when), url and text (with within); expected"),
]


class KeyNodesIn(StrictBody):
    task: str = Field(min_length=1, max_length=Task.ID_LENGTH, description="the id of a task")
    nodes: list[NodeJson] = Field(min_length=1, max_length=MOST_KEY_NODES)
    in_order: bool = Field(False, description="whether a node only counts after those before it")


class KeyNodesEdit(StrictBody):
    nodes: list[NodeJson] = Field(min_length=1, max_length=MOST_KEY_NODES)
    in_order: bool | None = Field(None, description="as it is where it is left out")


class KeyNodesOut(Schema):
    id: int
    task: str = Field(description="the id of the task")
    nodes: list[NodeJson]
    in_order: bool
    revision: int = Field(description="grows with every change")
    changed: datetime


class KeyNodesPage(Schema):
    items: list[KeyNodesOut]
    next: str | None


class CompletionOut(Schema):
    trajectory: int
    share: float = Field(description="of the key nodes, 0 to 1")
    steps: list[int | None] = Field(
        description="for each node the first step that reaches it, counted from 0; null where none does"
    )
    unexpected: list[int] = Field(
        description="places of nodes whose observation is another than the expected one"
    )


class CompletionPage(Schema):
    items: list[CompletionOut]
    next: str | None


class NodeOut(Schema):
    name: str
    step: int | None = Field(description="the first step that reaches it, counted from 0")
    expected: str | None = Field(description="the observation that the step should give")
    observed: str | None = Field(description="the one it gave, where one is expected")
    is_expected: bool | None = Field(description="whether they are equal, whatever the white space")


class TrajectoryNodesOut(Schema):
    key_nodes: int | None = Field(description="the id of the key nodes; null where the task has none")
    share: float | None
    nodes: list[NodeOut]


@router.get(
    "/projects/{slug}/key-nodes",
    response=KeyNodesPage,
    summary="List key nodes of tasks",
    openapi_extra=_READ,
)
def list_key_nodes(
    request: KeyRequest,
    slug: str,
    task: str = Query("", max_length=Task.ID_LENGTH, description="the id of a task"),
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> dict[str, Any]:
    """Newest first."""
    project = project_of_key(request.auth, slug, Scope.FEEDBACK_READ)
    page, following = paginate(
        selectors.list_key_nodes(project, task), cursor=cursor, limit=limit, field=None
    )
    return {"items": [key_nodes_out(own) for own in page], "next": following}


@router.post(
    "/projects/{slug}/key-nodes",
    response={201: KeyNodesOut},
    operation_id="set_key_nodes",
    summary="Set the key nodes of a task",
    openapi_extra=_WRITE,
)
def set_key_nodes(request: KeyRequest, slug: str, body: KeyNodesIn) -> Status:
    """They replace those that the task has."""
    project = project_of_key(request.auth, slug, Scope.FEEDBACK_WRITE)
    task = selectors.named_task(project, body.task)
    own = services.set_key_nodes(task=task, nodes=body.nodes, in_order=body.in_order, by=request.auth)
    return Status(201, key_nodes_out(own))


@router.get(
    _LIST,
    response=KeyNodesOut,
    operation_id="get_key_nodes",
    summary="The key nodes of a task",
    openapi_extra=_READ,
)
def read_key_nodes(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    return key_nodes_out(_own(request, slug, pk, Scope.FEEDBACK_READ))


@router.put(
    _LIST,
    response=KeyNodesOut,
    operation_id="edit_key_nodes",
    summary="Edit the key nodes of a task",
    openapi_extra=_WRITE,
)
def edit_key_nodes(request: KeyRequest, slug: str, pk: int, body: KeyNodesEdit) -> dict[str, Any]:
    own = _own(request, slug, pk, Scope.FEEDBACK_WRITE)
    changed = services.set_key_nodes(task=own.task, nodes=body.nodes, in_order=body.in_order, by=request.auth)
    return key_nodes_out(changed)


@router.delete(
    _LIST,
    response={204: None},
    operation_id="delete_key_nodes",
    summary="Delete the key nodes of a task",
    openapi_extra=_WRITE,
)
def delete_key_nodes(request: KeyRequest, slug: str, pk: int) -> Status:
    services.delete_key_nodes(own=_own(request, slug, pk, Scope.FEEDBACK_WRITE), by=request.auth)
    return Status(204, None)


@router.get(
    _LIST + "/completions",
    response=CompletionPage,
    operation_id="list_key_node_completions",
    summary="List what trajectories reach of key nodes",
    openapi_extra=_READ,
)
def list_completions(
    request: KeyRequest, slug: str, pk: int, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> dict[str, Any]:
    """Of the task, in the order they were computed, the newest first; after a change those of many trajectories follow
    within a minute."""
    own = _own(request, slug, pk, Scope.FEEDBACK_READ)
    rows = selectors.list_completions(own)
    page, following = paginate(rows, cursor=cursor, limit=limit, field=None)
    return {"items": [_completion_out(each) for each in page], "next": following}


@router.get(
    "/projects/{slug}/trajectories/{int:pk}/key-nodes",
    response=TrajectoryNodesOut,
    operation_id="get_trajectory_key_nodes",
    summary="What a trajectory reaches of its task's key nodes",
    openapi_extra=_READ,
)
def trajectory_key_nodes(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    """With the expected and the actual observation of each node."""
    project = project_of_key(request.auth, slug, Scope.FEEDBACK_READ)
    own, rows = selectors.rows_of_trajectory(require_trajectory(project, pk))
    reached = sum(row.step is not None for row in rows)
    return {
        "key_nodes": own.pk if own is not None else None,
        "share": reached / len(rows) if rows else None,
        "nodes": [
            {
                "name": row.node.name,
                "step": row.step,
                "expected": row.node.expected,
                "observed": row.observed,
                "is_expected": row.is_expected,
            }
            for row in rows
        ],
    }


def key_nodes_out(own: TaskKeyNodes) -> dict[str, Any]:
    return {
        "id": own.pk,
        "task": own.task.external_id,
        "nodes": own.nodes,
        "in_order": own.in_order,
        "revision": own.revision,
        "changed": own.changed_at,
    }


def _completion_out(each: KeyNodeCompletion) -> dict[str, Any]:
    return {
        "trajectory": each.trajectory_id,
        "share": each.share,
        "steps": each.steps,
        "unexpected": each.unexpected,
    }


def _own(request: KeyRequest, slug: str, pk: int, scope: Scope) -> TaskKeyNodes:
    return selectors.get_key_nodes(project_of_key(request.auth, slug, scope), pk)
