"""Creating, assigning and releasing items."""

import hashlib
import secrets
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import isfinite

from django.db import transaction
from django.db.models import Count, F, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.urls import reverse

from apps.accounts.models import Project, User
from apps.annotation.feedback_types import FEEDBACK_TYPES
from apps.annotation.models import Annotator, Assignment, Campaign, Item, ItemTrajectory
from apps.annotation.services import queue
from apps.annotation.services.closed_campaigns import require_unclosed
from apps.core.errors import Conflict, DomainError
from apps.inbox.models import NotificationEvent
from apps.inbox.services import notify_people
from apps.trajectories.models import Trajectory
from apps.webhooks.models import WebhookEvent
from apps.webhooks.services import announce

CHUNK = 1000
MAX_NAME_LENGTH = 190
SUBMITTED = Assignment.State.SUBMITTED
LOCKED_STATES = (Assignment.State.LOCKED, Assignment.State.ASSIGNED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSpec:
    """name: of the comparison; without it, equal contents in any order are one item."""

    trajectories: Sequence[Trajectory]
    priority: float = 0
    name: str | None = None

    @property
    def key(self) -> str:
        first = self.trajectories[0]
        return item_key(self.name, first.task.external_id, [t.content_hash for t in self.trajectories])


@dataclass(frozen=True, slots=True)
class AddedItems:
    created: int
    duplicates: int
    items: tuple[int, ...] = ()  # ids of the created ones


def item_key(name: str | None, task: str, hashes: Sequence[str]) -> str:
    """A comparison's key: the name it was given, or its task and contents in any order."""
    if name is not None:
        return f"name:{name}"
    return hashlib.sha256("\n".join([task, *sorted(hashes)]).encode()).hexdigest()


def add_items(*, campaign: Campaign, items: Iterable[ItemSpec]) -> AddedItems:
    """Add items, each once by its key. All or nothing; the stream is read in chunks."""
    created: list[int] = []
    duplicates = 0
    stream = iter(items)
    with transaction.atomic():
        # One writer per campaign, so that looking up keys and inserting them is one step.
        campaign = Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
        require_unclosed(campaign, "add items")
        while chunk := list(islice(stream, CHUNK)):
            new = _create_item_batch(campaign, chunk)
            created += new
            duplicates += len(chunk) - len(new)
    return AddedItems(len(created), duplicates, tuple(created))


def recount(items: Collection[int]) -> None:
    """Set `claimed_count` and `completed_count` of the items from their assignments. Needs a transaction."""
    locked = Item.objects.select_for_update(no_key=True).filter(pk__in=items).order_by("pk")
    rows = Item.objects.filter(pk__in=list(locked.values_list("pk", flat=True)))
    rows.exclude(purpose=Item.Purpose.WORK).update(completed_count=0, claimed_count=0)
    rows.filter(purpose=Item.Purpose.WORK).update(
        completed_count=_assignment_count(SUBMITTED),
        claimed_count=_assignment_count(SUBMITTED, *LOCKED_STATES),
    )


def _assignment_count(*states: str) -> Coalesce:
    counted = Assignment.objects.filter(item=OuterRef("pk"), state__in=states, is_adjudication=False)
    return Coalesce(Subquery(counted.order_by().values("item").annotate(n=Count("pk")).values("n")), 0)


@transaction.atomic
def set_acquisition_scores(*, campaign: Campaign, scores: Mapping[int, float]) -> int:
    """Set how informative an annotation of each item would be, for the order `active`; how many items were set.

    scores: by item id, finite; higher ones are assigned first. Items without one come last.
    """
    wrong = next((item for item, score in scores.items() if not isfinite(score)), None)
    if wrong is not None:
        raise DomainError(f"The acquisition score of item {wrong} is not a finite number.")
    stored = 0
    rows = iter(sorted(scores.items()))
    while chunk := dict(islice(rows, CHUNK)):
        items = list(
            Item.objects.select_for_update(no_key=True).filter(campaign=campaign, pk__in=chunk).order_by("pk")
        )
        for item in items:
            item.acquisition_score = chunk[item.pk]
        Item.objects.bulk_update(items, ["acquisition_score"])
        stored += len(items)
    return stored


@transaction.atomic
def assign_items(*, annotator: Annotator, items: Collection[Item], only: bool = False) -> int:
    """Reserve items for an annotator, who gets them before all others; how many were reserved.

    only: no one else gets them, except who had them before and whom they are assigned to in the same way.
    Skipped are items the annotator had before, and items that need no more annotations.
    """
    for campaign in Campaign.objects.filter(pk__in={item.campaign_id for item in items}):
        require_unclosed(campaign, "assign items")
    given, last = 0, None
    for pk in sorted(item.pk for item in items):
        item = Item.objects.select_for_update(no_key=True).get(pk=pk)
        is_full = item.claimed_count >= item.overlap and not (only and item.is_exclusive)
        if item.purpose != Item.Purpose.WORK or is_full:
            continue
        _, is_new = Assignment.objects.get_or_create(
            item=item,
            annotator=annotator,
            is_adjudication=False,
            defaults={
                "state": Assignment.State.ASSIGNED,
                "is_reserved": True,
                "swapped": item.campaign.swap_sides and bool(secrets.randbits(1)),
            },
        )
        if is_new:
            item.claimed_count += 1
            if only:
                item.is_exclusive, item.overlap = True, item.claimed_count
            item.save(update_fields=["claimed_count", "is_exclusive", "overlap"])
            given, last = given + 1, item
    if last is not None:
        _tell_assigned(annotator, last.campaign, given, key=f"{last.campaign_id}:{last.pk}")
    return given


def _tell_assigned(annotator: Annotator, campaign: Campaign, count: int, *, key: str) -> None:
    """Tell the annotator and the project's webhooks."""
    words = "An item was" if count == 1 else f"{count} items were"
    if annotator.user is not None:
        notify_people(
            project=campaign.project,
            users=[annotator.user],
            event=NotificationEvent.ITEMS_ASSIGNED,
            key=f"assigned:{key}:{uuid.uuid4()}",
            title=f"{words} assigned to you in {campaign.name}",
            path=reverse("annotation:campaign-work", args=[campaign.project.slug, campaign.pk]),
        )
    data = {"campaign": campaign.name, "annotator": str(annotator), "items": count}
    path = reverse("annotation:campaign-detail", args=[campaign.project.slug, campaign.pk])
    announce(campaign.project, WebhookEvent.ITEMS_ASSIGNED, data, path=path)


@transaction.atomic
def assign_new_items(*, campaign: Campaign, items: Sequence[int], annotators: Collection[Annotator]) -> None:
    """Reserve items that were created a moment ago, in the same transaction, for each of the annotators."""
    if len(annotators) > campaign.overlap:
        raise DomainError(
            f"{len(annotators)} annotators are assigned, and each item is annotated by {campaign.overlap}; "
            "assign fewer, or raise the number of annotators per item.",
            pointer="/assignees",
        )
    if not items:
        return
    for start in range(0, len(items), CHUNK):
        chunk = items[start : start + CHUNK]
        Assignment.objects.bulk_create(
            Assignment(
                item_id=item,
                annotator=annotator,
                state=Assignment.State.ASSIGNED,
                is_reserved=True,
                swapped=campaign.swap_sides and bool(secrets.randbits(1)),
            )
            for item in chunk
            for annotator in annotators
        )
        recount(chunk)
    for annotator in annotators:
        _tell_assigned(annotator, campaign, len(items), key=f"{campaign.pk}:{items[0]}")


@transaction.atomic
def release_assignment(*, assignment: Assignment) -> None:
    """End an assignment. The draft is kept, and can be submitted while the item needs an annotation."""
    item = Item.objects.select_for_update(no_key=True).get(pk=assignment.item_id)
    assignment = Assignment.objects.select_for_update(no_key=True, of=("self",)).get(pk=assignment.pk)
    if assignment.state not in LOCKED_STATES:
        raise Conflict(f"This assignment cannot be released: it is {assignment.get_state_display().lower()}.")
    assignment.state, assignment.is_reserved, assignment.lock_expires_at = (
        Assignment.State.EXPIRED,
        False,
        None,
    )
    assignment.save(update_fields=["state", "is_reserved", "lock_expires_at"])
    if item.purpose == Item.Purpose.WORK:
        queue.change_claimed_count(item.pk, -1)
        queue.open_to_everyone(item.pk)


@transaction.atomic
def offer_skipped_items(*, campaign: Campaign) -> int:
    """Give items that were skipped, and still need an annotation, to the same annotators once more; how many items
    someone gets. Their drafts are there again. Flagged items are faulty and wait for the manager."""
    require_unclosed(campaign, "offer skipped items")
    left = Assignment.objects.filter(
        item__campaign=campaign,
        item__purpose=Item.Purpose.WORK,
        state=Assignment.State.SKIPPED,
        is_adjudication=False,
        annotations=None,  # what was annotated before is not given out again
        annotator__user__is_active=True,
        annotator__user__memberships__project=campaign.project_id,
    )
    wanting = Item.objects.filter(pk__in=left.values("item"), claimed_count__lt=F("overlap"))
    items = list(wanting.select_for_update(no_key=True).order_by("pk").values_list("pk", flat=True))
    # As if their lock had expired: the queue resumes these before it gives out new items.
    left.filter(item__in=items).update(state=Assignment.State.EXPIRED, finished_at=None)
    return len(items)


def release_member_assignments(*, project: Project, user: User) -> None:
    """End all assignments of a member who leaves the project. Annotations stay."""
    held = Assignment.objects.filter(
        annotator__project=project, annotator__user=user, state__in=LOCKED_STATES
    )
    for assignment in held.order_by("item_id"):
        release_assignment(assignment=assignment)


def _create_item_batch(campaign: Campaign, chunk: list[ItemSpec]) -> list[int]:
    specs: dict[str, ItemSpec] = {}
    for spec in chunk:
        _check(campaign, spec)
        specs.setdefault(spec.key, spec)
    known = set(Item.objects.filter(campaign=campaign, key__in=specs).values_list("key", flat=True))
    fresh = [(key, spec) for key, spec in specs.items() if key not in known]
    rows = Item.objects.bulk_create(
        Item(
            campaign=campaign,
            task_id=spec.trajectories[0].task_id,
            key=key,
            priority=spec.priority,
            overlap=campaign.overlap,
        )
        for key, spec in fresh
    )
    ItemTrajectory.objects.bulk_create(
        ItemTrajectory(item=row, trajectory=trajectory, position=position)
        for row, (_, spec) in zip(rows, fresh, strict=True)
        for position, trajectory in enumerate(spec.trajectories)
    )
    return [row.pk for row in rows]


def _check(campaign: Campaign, spec: ItemSpec) -> None:
    places = spec.trajectories
    for name in campaign.feedback_types:
        kind = FEEDBACK_TYPES[name]
        if not kind.min_trajectories <= len(places) <= kind.max_trajectories:
            wanted = (
                str(kind.min_trajectories)
                if kind.min_trajectories == kind.max_trajectories
                else f"{kind.min_trajectories} to {kind.max_trajectories}"
            )
            raise DomainError(
                f"{kind.label} needs {wanted} trajectories per item; this item has {len(places)}."
            )
    if len({t.content_hash for t in places}) != len(places):
        raise DomainError("An item contains the same trajectory twice; use different trajectories.")
    if any(t.task_id != places[0].task_id for t in places):
        raise DomainError("The trajectories of an item have different tasks; use trajectories of one task.")
    if any(t.project_id != campaign.project_id for t in places):
        raise DomainError("A trajectory of this item belongs to another project.", status=404)
    if spec.name is not None and not 0 < len(spec.name) <= MAX_NAME_LENGTH:
        raise DomainError(f"An item's name must have between 1 and {MAX_NAME_LENGTH} characters.")
