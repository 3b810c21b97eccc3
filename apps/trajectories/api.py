"""Trajectories over HTTP: sent in as one, an array or JSON lines; listed; read as ATIF or as chat messages."""

from datetime import datetime
from typing import Any, BinaryIO, cast

from django.http import HttpResponse, JsonResponse
from ninja import Field, Router, Schema

from apps.accounts.access import project_of_key, require_scope
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope
from apps.core.http.api import DEFAULT_LIMIT, paginate, problem
from apps.core.storage.unpacking import bounds_of_request
from apps.trajectories import exports, formats, services
from apps.trajectories.models import Trajectory
from apps.trajectories.selectors import filter_trajectories, require_trajectory

router = Router()


class Rejected(Schema):
    line: int
    pointer: str | None
    message: str


class FieldCount(Schema):
    path: str = Field(description="JSON pointer of the field; `*` is any index")
    reason: str
    count: int


class Imported(Schema):
    created: int
    duplicates: int
    updated: int = Field(description="duplicates that brought an outcome which was unknown")
    rejected: list[Rejected]
    dropped: list[FieldCount] = Field(description="fields of the source that are in no trajectory, and why")
    kept: list[FieldCount] = Field(description="fields kept in `extra` or metadata, which no model reads")
    missing_attachments: list[str] = Field(
        [], description="sources sha256:... without an attachment in the project; kept as text"
    )


class Outcome(Schema):
    reward: float | None
    success: bool | None


class Listed(Schema):
    id: str
    task: str
    agent: str
    steps: int
    tokens: int
    outcome: Outcome
    created: datetime


class Page(Schema):
    items: list[Listed]
    next: str | None


@router.post("/projects/{slug}/trajectories", response=Imported)
def post_trajectories(
    request: KeyRequest, slug: str, format: str = formats.AUTO, keep_good: bool = False
) -> HttpResponse:
    """Send trajectories: one document, an array, or JSON lines; gzip and zstd are unpacked.

    Nothing is imported if one is bad (422 with what was rejected), unless `keep_good=1`.
    """
    project = project_of_key(request.auth, slug, Scope.INGEST)
    result = services.import_trajectories(
        project=project,
        stream=cast(BinaryIO, request),
        format=format,
        keep_good=keep_good,
        by=request.auth,
        bounds=bounds_of_request(project.pk),
    )
    if result.rejected and not keep_good:
        first = result.rejected[0]
        detail = f"Nothing was imported: line {first['line']}: {first['message']}"
        return problem(422, detail, pointer=first["pointer"], **result.as_json())
    return JsonResponse(result.as_json())


@router.get("/projects/{slug}/trajectories", response=Page)
def list_trajectories(
    request: KeyRequest,
    slug: str,
    cursor: str | None = None,
    limit: int = DEFAULT_LIMIT,
    task: str = "",
    agent: str = "",
    success: bool | None = None,
    speaker: str = "",
) -> dict[str, Any]:
    """Newest first. speaker: those in which someone of this name speaks."""
    project = project_of_key(request.auth, slug, Scope.INGEST)
    rows = filter_trajectories(project, task=task, agent=agent, success=success, speaker=speaker)
    page, following = paginate(rows.select_related("task"), cursor=cursor, limit=limit)
    return {"items": [_listed(row) for row in page], "next": following}


@router.get("/trajectories/{int:pk}")
def get_trajectory(request: KeyRequest, pk: int, format: str = "atif") -> JsonResponse:
    """One trajectory as an ATIF document, or with `format=openai` as chat messages."""
    require_scope(request.auth, Scope.INGEST)
    row = require_trajectory(request.auth.project, pk)
    document = exports.export_document(request.auth.project, row.pk, format=format)
    return JsonResponse(document, json_dumps_params={"ensure_ascii": False})


def _listed(row: Trajectory) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "task": row.task.external_id,
        "agent": row.agent_name,
        "steps": row.step_count,
        "tokens": row.token_count,
        "outcome": {"reward": row.outcome_reward, "success": row.success},
        "created": row.created_at,
    }
