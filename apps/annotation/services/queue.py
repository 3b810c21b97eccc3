"""Handing out items. Locks are taken in one order everywhere: annotator, item, assignment.

A count on the item (`claimed_count`: live leases and counted annotations) is only changed while its row is locked.
"""

import secrets
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from apps.annotation.models import Annotator, Assignment, Campaign, Item
from apps.annotation.selectors import judged_by, pause_of
from apps.core.errors import Conflict

State = Assignment.State
Purpose = Item.Purpose
AT_ONCE = 500


def assign_next_item(*, campaign: Campaign, annotator: Annotator) -> Assignment | None:
    """What this annotator judges next. None: nothing is left.

    What she holds; practice; what was given to her; what she began and lost; now and then gold; a new item.
    Raises Conflict where the campaign hands nothing out, or nothing to her.
    """
    if campaign.state != Campaign.State.OPEN:
        raise Conflict(f"The campaign {campaign.name!r} is {campaign.state}; nothing is handed out.")
    if campaign.is_over:
        raise Conflict(f"The deadline of {campaign.name!r} is over; nothing is handed out.")
    if (paused := pause_of(campaign, annotator)) is not None:
        raise Conflict(paused.reason)
    expire_locks(campaign=campaign)
    with transaction.atomic():
        # Two tabs of one person must not lease two items.
        Annotator.objects.select_for_update(no_key=True).get(pk=annotator.pk)
        held = Assignment.objects.filter(annotator=annotator, state=State.LOCKED)
        if (own := held.filter(item__campaign=campaign).first()) is not None:
            return _renewed(own, campaign)
        _give_back(held)
        first = _lease_practice(campaign, annotator) or _begin_given(campaign, annotator)
        if first is not None or _has_enough(campaign, annotator):
            return first
        return (
            _revive(campaign, annotator)
            or _lease_gold(campaign, annotator)
            or _lease_new(campaign, annotator)
        )


def expire_locks(*, campaign: Campaign | None = None) -> int:
    """Take back leases that ran out; how many. What is locked now is busy, and is looked at next time."""
    now = timezone.now()
    due = Assignment.objects.filter(state=State.LOCKED, lock_expires_at__lt=now).order_by("lock_expires_at")
    if campaign is not None:
        due = due.filter(item__campaign=campaign)
    with transaction.atomic():
        rows = Item.objects.select_for_update(skip_locked=True, no_key=True)
        items = rows.filter(pk__in=list(due.values_list("item_id", flat=True)[:AT_ONCE]))
        locked = [item.pk for item in items]
        expired = (
            due.filter(item__in=locked).select_for_update(no_key=True, of=("self",)) if locked else due.none()
        )
        return _release(list(expired))


def new_lock_expiry(campaign: Campaign) -> datetime:
    return timezone.now() + timedelta(minutes=campaign.lock_minutes)


def _release(assignments: list[Assignment]) -> int:
    """Give up leases whose items are locked by this transaction."""
    for assignment in assignments:
        state = State.ASSIGNED if assignment.is_reserved else State.EXPIRED
        Assignment.objects.filter(pk=assignment.pk).update(state=state, lock_expires_at=None)
        if state == State.EXPIRED:
            hold(assignment.item_id, -1)
    return len(assignments)


def hold(item: int, by: int) -> None:
    """Count one hold more or less on an item locked by this transaction. Everybody may have gold and practice."""
    Item.objects.filter(pk=item, purpose=Purpose.WORK).update(claimed_count=F("claimed_count") + by)


def _has_enough(campaign: Campaign, annotator: Annotator) -> bool:
    """Whether she judged as many items as one person may; what she skipped does not count."""
    if campaign.max_items_per_annotator is None:
        return False
    return judged_by(annotator, campaign).count() >= campaign.max_items_per_annotator


def _give_back(held: QuerySet[Assignment]) -> None:
    """She turned to another campaign: the item she held is free again, her draft stays with her."""
    for assignment in held:
        Item.objects.select_for_update(no_key=True).get(pk=assignment.item_id)
        _release(list(held.filter(pk=assignment.pk).select_for_update(no_key=True)))


def _renewed(assignment: Assignment, campaign: Campaign) -> Assignment:
    assignment.lock_expires_at = new_lock_expiry(campaign)
    Assignment.objects.filter(pk=assignment.pk, state=State.LOCKED).update(
        lock_expires_at=assignment.lock_expires_at
    )
    return assignment


def _revive(campaign: Campaign, annotator: Annotator) -> Assignment | None:
    """Her own expired lease on an item that still wants somebody: the same assignment, coin and draft."""
    mine = Assignment.objects.filter(
        annotator=annotator, state=State.EXPIRED, item__campaign=campaign, annotations=None
    )
    wanting = mine.filter(Q(item__claimed_count__lt=F("item__overlap")) | ~Q(item__purpose=Purpose.WORK))
    for assignment in wanting.order_by("-draft_saved_at", "pk"):
        if revive(assignment, campaign):
            return assignment
    return None


def revive(assignment: Assignment, campaign: Campaign) -> bool:
    """Lease an expired assignment again if its item still wants one. Needs a transaction."""
    item = Item.objects.select_for_update(no_key=True).get(pk=assignment.item_id)
    if item.purpose == Purpose.WORK and item.claimed_count >= item.overlap:
        return False
    rows = Assignment.objects.filter(pk=assignment.pk, state=State.EXPIRED)
    if not rows.update(state=State.LOCKED, lock_expires_at=new_lock_expiry(campaign)):
        return False
    hold(item.pk, 1)
    assignment.refresh_from_db()
    return True


def _lease_practice(campaign: Campaign, annotator: Annotator) -> Assignment | None:
    """The first practice item she has not seen."""
    item = _unseen(campaign, annotator, Purpose.PRACTICE).order_by("-priority", "pk").first()
    return _leased(item, campaign, annotator)


def _begin_given(campaign: Campaign, annotator: Annotator) -> Assignment | None:
    """What a researcher gave to her; its place on the item is hers already."""
    given = Assignment.objects.filter(annotator=annotator, item__campaign=campaign, state=State.ASSIGNED)
    assignment = given.order_by("-item__priority", "pk").first()
    if assignment is None:
        return None
    Item.objects.select_for_update(no_key=True).get(pk=assignment.item_id)
    if not given.filter(pk=assignment.pk).update(
        state=State.LOCKED, lock_expires_at=new_lock_expiry(campaign)
    ):
        return _begin_given(campaign, annotator)  # it was taken back just now
    assignment.refresh_from_db()
    return assignment


def _lease_gold(campaign: Campaign, annotator: Annotator) -> Assignment | None:
    """Mixed into the work, as often as the campaign says, as long as there is work to mix it into."""
    if secrets.randbelow(100) >= campaign.gold_percent:
        return None
    unseen = list(_unseen(campaign, annotator, Purpose.GOLD).order_by("pk")[:AT_ONCE])
    if not unseen or not open_items(campaign, annotator).exists():
        return None
    return _leased(secrets.choice(unseen), campaign, annotator)


def _unseen(campaign: Campaign, annotator: Annotator, purpose: Item.Purpose) -> QuerySet[Item]:
    asked = Assignment.objects.filter(item=OuterRef("pk"), annotator=annotator)
    return Item.objects.filter(~Exists(asked), campaign=campaign, purpose=purpose)


def _lease_new(campaign: Campaign, annotator: Annotator) -> Assignment | None:
    item = (
        open_items(campaign, annotator).select_for_update(skip_locked=True, no_key=True, of=("self",)).first()
    )
    item = item or _wait_for_item(campaign, annotator)
    if item is not None:
        hold(item.pk, 1)
    return _leased(item, campaign, annotator)


def _leased(item: Item | None, campaign: Campaign, annotator: Annotator) -> Assignment | None:
    if item is None:
        return None
    return Assignment.objects.create(
        item=item,
        annotator=annotator,
        lock_expires_at=new_lock_expiry(campaign),
        # What is said of practice speaks of A and B as they are stored.
        swapped=campaign.swap_sides and item.purpose != Purpose.PRACTICE and bool(secrets.randbits(1)),
    )


def _wait_for_item(campaign: Campaign, annotator: Annotator) -> Item | None:
    """SKIP LOCKED passes over an item somebody is just locking, who may let it go: look again and wait for each.

    One lock at a time (a savepoint gives the last one back), so that two who wait never wait for each other.
    """
    for candidate in list(open_items(campaign, annotator).values_list("pk", flat=True)):
        point = transaction.savepoint()
        rows = open_items(campaign, annotator).filter(pk=candidate)
        item = rows.select_for_update(no_key=True, of=("self",)).first()
        if item is not None:
            transaction.savepoint_commit(point)
            return item
        transaction.savepoint_rollback(point)
    return None


def open_items(campaign: Campaign, annotator: Annotator) -> QuerySet[Item]:
    """Items that want a judgement this annotator has not been asked for, the least judged first."""
    asked = Assignment.objects.filter(item=OuterRef("pk"), annotator=annotator)
    rows = Item.objects.filter(~Exists(asked), campaign=campaign, claimed_count__lt=F("overlap"))
    if campaign.in_pilot:
        return rows.filter(in_pilot=True).order_by("claimed_count", "random_key", "pk")
    if campaign.ordering == Campaign.Ordering.PRIORITY:
        return rows.order_by("-priority", "claimed_count", "random_key", "pk")
    if campaign.ordering == Campaign.Ordering.ACTIVE:
        return rows.order_by(
            F("acquisition_score").desc(nulls_last=True), "claimed_count", "random_key", "pk"
        )
    return rows.order_by("claimed_count", "random_key", "pk")
