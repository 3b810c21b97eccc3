"""Items of campaigns: adding, listing, reading."""

from datetime import datetime
from typing import Annotated, Any

from ninja import Field, Router, Schema, Status

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Project, Scope, User
from apps.annotation import services
from apps.annotation.campaign_schemas import AddedItemsOut, ItemBuild
from apps.annotation.models import Item
from apps.annotation.presentation import SIDES
from apps.annotation.selectors import get_campaign_by_name, get_item, item_trajectory_ids
from apps.core.errors import DomainError, NotFound
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.core.http.api_schemas import Cursor, Limit, StrictBody
from apps.core.http.api_scopes import needs
from apps.core.http.document_types import choices
from apps.trajectories.document_schemas import ItemDocument
from apps.trajectories.models import Trajectory
from apps.trajectories.services import store_trajectories
from workers import schema
from workers.errors import InvalidRecord
from workers.schema import parse_item

router = Router()
READ = (Scope.INGEST, Scope.FEEDBACK_READ, Scope.ADMIN)
MOST = 1000
MAX_TRAJECTORIES = len(SIDES)


ItemPurpose = Annotated[Item.Purpose, choices(Item.Purpose)]


class TaskIn(Schema):
    id: str = Field(min_length=1, max_length=200)
    instruction: str = ""
    reference: str | None = None


class ItemIn(Schema):
    """trajectories: each an ITEM (`{"trajectory_id": ...}` for a stored one). task: of trajectories without one."""

    trajectories: list[ItemDocument] = Field(min_length=1, max_length=MAX_TRAJECTORIES)
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


class ItemOut(Schema):
    """completed: annotations, of the `overlap` that it needs. claimed: with the assignments that may become one.

    acquisition_score: how informative an annotation would be, where active learning has looked at it.
    """

    id: int
    campaign: str
    task: str
    trajectories: list[str] = Field(description="ids, in the order of the item: `a`, `b`, ...")
    purpose: ItemPurpose
    in_pilot: bool
    priority: float
    acquisition_score: float | None
    overlap: int
    claimed: int
    completed: int
    created: datetime


class AssignedIn(StrictBody):
    member: str = Field(max_length=254, description="the address of a member")
    items: list[int] = Field(min_length=1, max_length=MOST)
    only: bool = Field(False, description="no one else gets them")


class AssignedOut(Schema):
    assigned: int


class ItemPage(Schema):
    items: list[ItemOut]
    next: str | None


@router.get(
    "/projects/{slug}/campaigns/{path:name}/items",
    response=ItemPage,
    operation_id="list_campaign_items",
    summary="List the items of a campaign",
    openapi_extra=needs(*READ),
)
def list_items(
    request: KeyRequest,
    slug: str,
    name: str,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
    purpose: ItemPurpose | None = None,
) -> ItemPage:
    """Newest first. purpose: only those of this purpose."""
    campaign = get_campaign_by_name(project_of_key(request.auth, slug, *READ), name)
    rows = campaign.items.select_related("task", "campaign")
    page, following = paginate(rows.filter(purpose=purpose) if purpose else rows, cursor=cursor, limit=limit)
    return ItemPage(items=_items_out(page), next=following)


@router.post(
    "/projects/{slug}/campaigns/{path:name}/items",
    response={201: AddedItemsOut},
    summary="Add items to a campaign by rules",
    openapi_extra=needs(Scope.ADMIN),
)
def build_campaign_items(request: KeyRequest, slug: str, name: str, body: ItemBuild) -> Status[AddedItemsOut]:
    """Items of the project's trajectories. The same rules again add only duplicates."""
    campaign = get_campaign_by_name(project_of_key(request.auth, slug, Scope.ADMIN), name)
    added = services.build_items(campaign=campaign, choice=body.options())
    return Status(201, AddedItemsOut(created=added.created, duplicates=added.duplicates))


@router.get(
    "/projects/{slug}/items/{int:pk}",
    response=ItemOut,
    operation_id="get_item",
    summary="An item",
    openapi_extra=needs(*READ),
)
def get_campaign_item(request: KeyRequest, slug: str, pk: int) -> ItemOut:
    return _items_out([get_item(project_of_key(request.auth, slug, *READ), pk)])[0]


@router.post(
    "/projects/{slug}/campaigns/{path:name}/assignments",
    response=AssignedOut,
    operation_id="assign_items",
    summary="Assign items to a person",
    openapi_extra=needs(Scope.ADMIN),
)
def assign_campaign_items(request: KeyRequest, slug: str, name: str, body: AssignedIn) -> AssignedOut:
    """Reserve items for a member, who gets them first and is notified.

    Skipped are items that the member had before, and items that need no more annotations.
    """
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    campaign = get_campaign_by_name(project, name)
    user = User.objects.filter(
        memberships__project=project, email__iexact=body.member, is_active=True
    ).first()
    if user is None:
        raise NotFound(f"{body.member} is no member of this project.", pointer="/member")
    items = list(campaign.items.filter(pk__in=body.items))
    missing = set(body.items) - {item.pk for item in items}
    if missing:
        raise NotFound(f"The campaign has no item {min(missing)}.", pointer="/items")
    annotator = services.annotator_for(project=project, user=user)
    return AssignedOut(assigned=services.assign_items(annotator=annotator, items=items, only=body.only))


def _items_out(items: list[Item]) -> list[ItemOut]:
    trajectories = item_trajectory_ids([item.pk for item in items])
    return [
        ItemOut(
            id=item.pk,
            campaign=item.campaign.name,
            task=item.task.external_id,
            trajectories=[str(pk) for pk in trajectories[item.pk]],
            purpose=Item.Purpose(item.purpose),
            in_pilot=item.in_pilot,
            priority=item.priority,
            acquisition_score=item.acquisition_score,
            overlap=item.overlap,
            claimed=item.claimed_count,
            completed=item.completed_count,
            created=item.created_at,
        )
        for item in items
    ]


@router.post(
    "/projects/{slug}/items",
    response=ItemsOut,
    operation_id="add_items",
    summary="Add items to a campaign",
    openapi_extra=needs(Scope.INGEST),
)
def item_create(request: KeyRequest, slug: str, body: ItemsIn) -> ItemsOut:
    """Items of one to eight trajectories of one task.

    Items of higher priority come first in campaigns ordered by priority.
    """
    project = project_of_key(request.auth, slug, Scope.INGEST)
    campaign = get_campaign_by_name(project, body.campaign, pointer="/campaign")
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
