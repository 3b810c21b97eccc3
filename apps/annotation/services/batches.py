"""Several items together, for the page that shows them as a grid. They are held and released like locked items."""

from django.db import transaction

from apps.annotation.models import Annotator, Assignment, Campaign, Item
from apps.annotation.services import queue
from apps.core.errors import Conflict

State = Assignment.State
BATCH_ITEMS = 12


@transaction.atomic
def assign_batch(*, campaign: Campaign, annotator: Annotator, size: int = BATCH_ITEMS) -> list[Assignment]:
    """What the annotator holds in the campaign, and new items up to `size`; gold items are mixed in as usual.

    Raises Conflict if the campaign assigns no items, none to this annotator, or practice items come first.
    """
    queue.check_open(campaign, annotator)
    queue.expire_locks(campaign=campaign)
    Annotator.objects.select_for_update(no_key=True).get(pk=annotator.pk)
    if queue.unseen_items(campaign, annotator, Item.Purpose.PRACTICE).exists():
        raise Conflict("Practice items come first; they are shown one by one.")
    mine = Assignment.objects.filter(annotator=annotator, item__campaign=campaign, is_adjudication=False)
    held = list(mine.filter(state__in=[State.LOCKED, State.ASSIGNED]).order_by("state", "pk")[:size])
    renewed = [assignment.pk for assignment in held if not assignment.is_reserved]
    mine.filter(pk__in=renewed).update(lock_expires_at=queue.new_lock_expiry(campaign))
    while len(held) < size and not queue.has_reached_maximum(campaign, annotator, held=len(held)):
        assignment = queue.hold_another(campaign, annotator)
        if assignment is None:
            break
        held.append(assignment)
    return held
