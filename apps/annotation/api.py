"""`POST /projects/{p}/items`: add items to a campaign."""

from typing import Any

from ninja import Field, Router, Schema

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Project, Scope
from apps.annotation import services
from apps.annotation.models import Campaign
from apps.annotation.presentation import SIDES
from apps.core.errors import DomainError, NotFound
from apps.trajectories.models import Trajectory
from apps.trajectories.services import store_trajectories
from workers import schema
from workers.errors import InvalidRecord
from workers.schema import parse_item

router = Router()
MOST = 1000
MAX_TRAJECTORIES = len(SIDES)


class TaskIn(Schema):
    id: str = Field(min_length=1, max_length=200)
    instruction: str = ""
    reference: str | None = None


class ItemIn(Schema):
    """trajectories: each an ITEM (`{"trajectory_id": ...}` for a stored one). task: of trajectories without one."""

    trajectories: list[dict[str, Any]] = Field(min_length=1, max_length=MAX_TRAJECTORIES)
    task: TaskIn | None = None
    priority: float = 0
    name: str | None = Field(default=None, min_length=1, max_length=190)


class ItemsIn(Schema):
    campaign: str
    items: list[ItemIn] = Field(min_length=1, max_length=MOST)


class ItemsOut(Schema):
    campaign: str
    created: int
    duplicates: int
    items: list[int]


@router.post("/projects/{slug}/items", response=ItemsOut, summary="Add items to a campaign")
def item_create(request: KeyRequest, slug: str, body: ItemsIn) -> ItemsOut:
    """Items of one to eight trajectories of one task.

    Items of higher priority come first in campaigns ordered by priority.
    """
    project = project_of_key(request.auth, slug, Scope.INGEST)
    campaign = Campaign.objects.filter(project=project, name=body.campaign).first()
    if campaign is None:
        raise NotFound(
            f"There is no campaign {body.campaign!r} in this project; create it first.", pointer="/campaign"
        )
    specs = [
        services.ItemSpec(
            trajectories=_rows(project, item, f"/items/{place}"), priority=item.priority, name=item.name
        )
        for place, item in enumerate(body.items)
    ]
    added = services.add_items(campaign=campaign, items=specs)
    return ItemsOut(
        campaign=campaign.name, created=added.created, duplicates=added.duplicates, items=list(added.items)
    )


def _rows(project: Project, item: ItemIn, at: str) -> list[Trajectory]:
    """Trajectories of an item, in its order; new ones are stored first."""
    task = schema.Task(**item.task.dict()) if item.task else None
    keys = [
        _key(project, value, task, f"{at}/trajectories/{place}")
        for place, value in enumerate(item.trajectories)
    ]
    found = Trajectory.objects.select_related("task").in_bulk(keys)
    return [found[key] for key in keys]


def _key(project: Project, value: dict[str, Any], task: schema.Task | None, at: str) -> int:
    content = parse_item(value, task=task, pointer=at).content
    if isinstance(content, schema.TrajectoryId):
        rows = Trajectory.objects.filter(project=project)
        by_key = (
            rows.filter(pk=int(content.id))
            if content.id.isdecimal() and len(content.id) < 19
            else rows.none()
        )
        row = by_key.first() or rows.filter(external_id=content.id).order_by("-pk").first()
        if row is None:
            raise NotFound(
                f"There is no trajectory {content.id!r} in this project.", pointer=f"{at}/trajectory_id"
            )
        return row.pk
    if not isinstance(content, schema.Trajectory):
        raise InvalidRecord("an item must be messages or a trajectory.", pointer=at)
    if not content.task.id:
        raise DomainError("The task of the trajectories is missing; set task.id.", pointer=at, status=422)
    return store_trajectories(project=project, trajectories=[content], source_format="api")[0]
