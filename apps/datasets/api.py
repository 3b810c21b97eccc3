"""Datasets over HTTP: freeze, look, export."""

from datetime import datetime
from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from ninja import Field, Router, Schema, Status

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.datasets.exports import export_response
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import find_dataset_version, get_dataset_version, list_dataset_versions
from apps.datasets.services import freeze_dataset
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
        None, description="For adjudicated items: instead (default, only the adjudication), also, or not."
    )
    test_tasks: list[str] | None = Field(None, description="Exactly these tasks form the test split.")
    derived: list[str] = Field([], description="Derived labels to include: metric_scores, comment_steps.")
    shares: tuple[float, float, float] = SHARES
    seed: int = 0


class DatasetVersionOut(Schema):
    name: str
    state: str
    hash: str | None
    records: dict[str, int]
    splits: dict[str, int]
    usable_pairs: int
    error: str
    created: datetime


class DatasetVersionPage(Schema):
    items: list[DatasetVersionOut]
    next: str | None


@router.post("/projects/{slug}/datasets", response={202: DatasetVersionOut})
def post_dataset(request: KeyRequest, slug: str, body: FreezeIn) -> Status[dict[str, Any]]:
    """Freeze the feedback there is into the next version.

    A worker does it: ask for the dataset until its state is `succeeded`.
    """
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    filters = body.dict(include={"campaigns", "kinds", "origins", "annotators", "since", "adjudication"})
    dataset_version = freeze_dataset(
        project=project,
        name=body.name,
        by=request.auth,
        filters=filters,
        derived=body.derived,
        test_tasks=body.test_tasks,
        shares=body.shares,
        seed=body.seed,
    )
    return Status(202, dataset_version_json(dataset_version))


@router.get("/projects/{slug}/datasets", response=DatasetVersionPage)
def list_datasets(
    request: KeyRequest, slug: str, cursor: str | None = None, limit: int = DEFAULT_LIMIT
) -> dict[str, Any]:
    """Newest first."""
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    page, following = paginate(list_dataset_versions(project), cursor=cursor, limit=limit)
    return {"items": [dataset_version_json(row) for row in page], "next": following}


@router.get("/projects/{slug}/datasets/{name}", response=DatasetVersionOut)
def get_dataset(request: KeyRequest, slug: str, name: str) -> dict[str, Any]:
    """One version (`name@version`), or the newest frozen one (`name`)."""
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    return dataset_version_json(get_dataset_version(project, name))


@router.get("/projects/{slug}/datasets/{name}/export")
def export_dataset(
    request: KeyRequest, slug: str, name: str, format: str = "trl", split: str | None = None
) -> HttpResponse | StreamingHttpResponse:
    """The records as JSON lines, in a format other trainers read."""
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    return export_response(
        find_dataset_version(name, project=project), format=format, split=split, by=request.auth
    )


def dataset_version_json(row: DatasetVersion) -> dict[str, Any]:
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
