"""Handing out items. Locks are taken in one order everywhere: annotator, item, assignment.

A count on the item (`taken`: live leases and counted submissions) is only changed while its row is locked.
"""

import secrets
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.utils import timezone

from apps.annotation.models import Annotator, Assignment, Campaign, Item
from apps.core.errors import Conflict

State = Assignment.State
AT_ONCE = 500


def lease_next(*, campaign: Campaign, annotator: Annotator) -> Assignment | None:
    """What this annotator judges next: what she holds, what she began and lost, else a new item. None: nothing is left.

    Raises Conflict where the campaign hands nothing out.
    """
    if campaign.state != Campaign.State.OPEN:
        raise Conflict(f"The campaign {campaign.name!r} is {campaign.state}; nothing is handed out.")
    expire_leases(campaign=campaign)
    with transaction.atomic():
        # Two tabs of one person must not lease two items.
        Annotator.objects.select_for_update(no_key=True).get(pk=annotator.pk)
        held = Assignment.objects.filter(annotator=annotator, state=State.LEASED)
        if (own := held.filter(item__campaign=campaign).first()) is not None:
            return _renewed(own, campaign)
        _give_back(held)
        return _revive(campaign, annotator) or _lease_new(campaign, annotator)


def expire_leases(*, campaign: Campaign | None = None) -> int:
    """Take back leases that ran out; how many. What is locked now is busy, and is looked at next time."""
    now = timezone.now()
    due = Assignment.objects.filter(state=State.LEASED, leased_until__lt=now).order_by("leased_until")
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


def lease_end(campaign: Campaign) -> datetime:
    return timezone.now() + timedelta(minutes=campaign.lease_minutes)


def _release(assignments: list[Assignment]) -> int:
    """Give up leases whose items are locked by this transaction."""
    for assignment in assignments:
        Assignment.objects.filter(pk=assignment.pk).update(state=State.EXPIRED, leased_until=None)
        Item.objects.filter(pk=assignment.item_id).update(taken=F("taken") - 1)
    return len(assignments)


def _give_back(held: QuerySet[Assignment]) -> None:
    """She turned to another campaign: the item she held is free again, her draft stays with her."""
    for assignment in held:
        Item.objects.select_for_update(no_key=True).get(pk=assignment.item_id)
        _release(list(held.filter(pk=assignment.pk).select_for_update(no_key=True)))


def _renewed(assignment: Assignment, campaign: Campaign) -> Assignment:
    assignment.leased_until = lease_end(campaign)
    Assignment.objects.filter(pk=assignment.pk, state=State.LEASED).update(
        leased_until=assignment.leased_until
    )
    return assignment


def _revive(campaign: Campaign, annotator: Annotator) -> Assignment | None:
    """Her own expired lease on an item that still wants somebody: the same assignment, coin and draft."""
    mine = Assignment.objects.filter(
        annotator=annotator, state=State.EXPIRED, item__campaign=campaign, submissions=None
    )
    for assignment in mine.filter(item__taken__lt=F("item__wanted")).order_by("-draft_saved_at", "pk"):
        if revive(assignment, campaign):
            return assignment
    return None


def revive(assignment: Assignment, campaign: Campaign) -> bool:
    """Lease an expired assignment again if its item still wants one. Needs a transaction."""
    item = Item.objects.select_for_update(no_key=True).get(pk=assignment.item_id)
    if item.taken >= item.wanted:
        return False
    rows = Assignment.objects.filter(pk=assignment.pk, state=State.EXPIRED)
    if not rows.update(state=State.LEASED, leased_until=lease_end(campaign)):
        return False
    Item.objects.filter(pk=item.pk).update(taken=F("taken") + 1)
    assignment.refresh_from_db()
    return True


def _lease_new(campaign: Campaign, annotator: Annotator) -> Assignment | None:
    item = (
        _open_items(campaign, annotator)
        .select_for_update(skip_locked=True, no_key=True, of=("self",))
        .first()
    )
    item = item or _wait_for_item(campaign, annotator)
    if item is None:
        return None
    Item.objects.filter(pk=item.pk).update(taken=F("taken") + 1)
    return Assignment.objects.create(
        item=item,
        annotator=annotator,
        leased_until=lease_end(campaign),
        swapped=campaign.swap_sides and bool(secrets.randbits(1)),
    )


def _wait_for_item(campaign: Campaign, annotator: Annotator) -> Item | None:
    """SKIP LOCKED passes over an item somebody is just locking, who may let it go: look again and wait for each.

    One lock at a time (a savepoint gives the last one back), so that two who wait never wait for each other.
    """
    for candidate in list(_open_items(campaign, annotator).values_list("pk", flat=True)):
        point = transaction.savepoint()
        rows = _open_items(campaign, annotator).filter(pk=candidate)
        item = rows.select_for_update(no_key=True, of=("self",)).first()
        if item is not None:
            transaction.savepoint_commit(point)
            return item
        transaction.savepoint_rollback(point)
    return None


def _open_items(campaign: Campaign, annotator: Annotator) -> QuerySet[Item]:
    """Items that want a judgement this annotator has not been asked for, the least judged first."""
    asked = Assignment.objects.filter(item=OuterRef("pk"), annotator=annotator)
    rows = Item.objects.filter(~Exists(asked), campaign=campaign, taken__lt=F("wanted"))
    if campaign.ordering == Campaign.Ordering.PRIORITY:
        return rows.order_by("-priority", "taken", "random_key", "pk")
    return rows.order_by("taken", "random_key", "pk")
