"""Datasets over HTTP: freeze, look, export."""

from datetime import datetime
from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from ninja import Field, Router, Schema, Status

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.datasets.exports import attachment
from apps.datasets.models import Snapshot
from apps.datasets.selectors import snapshot_named, snapshots_of, version_in
from apps.datasets.services import freeze_snapshot
from apps.datasets.splits import SHARES

router = Router()


class FreezeIn(Schema):
    """Which feedback, and how it is split; everything but the name may be left out."""

    name: str
    campaigns: list[str] = []
    kinds: list[str] = []
    origins: list[str] = []
    annotators: list[str] = []
    since: str | None = None
    adjudication: str | None = Field(
        None, description="Of adjudicated items: instead (the default: only the adjudication), also, not."
    )
    test_tasks: list[str] | None = Field(None, description="Exactly these tasks are the test split.")
    derived: list[str] = Field(
        [], description="What is put in besides, made of what people said: metric_scores, comment_steps."
    )
    shares: tuple[float, float, float] = SHARES
    seed: int = 0


class SnapshotOut(Schema):
    name: str
    state: str
    hash: str | None
    records: dict[str, int]
    splits: dict[str, int]
    usable_pairs: int
    error: str
    created: datetime


class SnapshotPage(Schema):
    items: list[SnapshotOut]
    next: str | None


@router.post("/projects/{slug}/datasets", response={202: SnapshotOut})
def post_dataset(request: KeyRequest, slug: str, body: FreezeIn) -> Status[dict[str, Any]]:
    """Freeze the feedback there is into the next version.

    A worker does it: ask for the dataset until its state is `succeeded`.
    """
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    filters = body.dict(include={"campaigns", "kinds", "origins", "annotators", "since", "adjudication"})
    snapshot = freeze_snapshot(
        project=project,
        name=body.name,
        by=request.auth,
        filters=filters,
        derived=body.derived,
        test_tasks=body.test_tasks,
        shares=body.shares,
        seed=body.seed,
    )
    return Status(202, snapshot_out(snapshot))


@router.get("/projects/{slug}/datasets", response=SnapshotPage)
def list_datasets(
    request: KeyRequest, slug: str, cursor: str | None = None, limit: int = DEFAULT_LIMIT
) -> dict[str, Any]:
    """Newest first."""
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    page, following = paginate(snapshots_of(project), cursor=cursor, limit=limit)
    return {"items": [snapshot_out(row) for row in page], "next": following}


@router.get("/projects/{slug}/datasets/{name}", response=SnapshotOut)
def get_dataset(request: KeyRequest, slug: str, name: str) -> dict[str, Any]:
    """One version (`name@version`), or the newest frozen one (`name`)."""
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    return snapshot_out(version_in(project, name))


@router.get("/projects/{slug}/datasets/{name}/export")
def export_dataset(
    request: KeyRequest, slug: str, name: str, format: str = "trl", split: str | None = None
) -> HttpResponse | StreamingHttpResponse:
    """The records as JSON lines, in a format other trainers read."""
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    return attachment(snapshot_named(name, project=project), format=format, split=split, by=request.auth)


def snapshot_out(row: Snapshot) -> dict[str, Any]:
    return {
        "name": str(row),
        "state": row.state,
        "hash": row.content_hash or None,
        "records": row.records,
        "splits": row.splits,
        "usable_pairs": row.usable_pairs,
        "error": row.error,
        "created": row.created_at,
    }
