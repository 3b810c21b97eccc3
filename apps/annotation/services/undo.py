"""Undo: an annotator takes back what they did last, and has the item again with their answers."""

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from apps.accounts.models import User
from apps.annotation.models import Annotation, Annotator, Assignment, Item
from apps.annotation.presentation import present_item
from apps.annotation.selectors import annotation_form_fields, list_history
from apps.annotation.services import queue
from apps.annotation.services.annotations import lock_assignment
from apps.core.errors import Conflict

State = Assignment.State


@transaction.atomic
def undo_assignment(*, assignment: Assignment, by: User) -> Assignment:
    """Take back the annotator's last annotation, skip or flag; the item is locked by them again.

    A withdrawn annotation is kept and counts for nothing; its answers are the draft. What the annotator holds is
    released with its draft, and follows later. Raises Conflict where it is not what they did last, has been edited, was
    practice or an adjudication, or where someone else has got the skipped item.
    """
    campaign, annotator = assignment.item.campaign, assignment.annotator
    queue.check_open(campaign, annotator)
    Annotator.objects.select_for_update(no_key=True).get(pk=annotator.pk)
    held = Assignment.objects.filter(annotator=annotator, state=State.LOCKED)
    # Both items in the order of their keys, so that two annotators never wait for each other.
    items = [assignment.item_id, *held.values_list("item_id", flat=True)]
    list(Item.objects.select_for_update(no_key=True).filter(pk__in=items).order_by("pk"))
    assignment = lock_assignment(assignment, by)
    _require_undoable(assignment, annotator)
    queue.release_held(held)
    if assignment.state == State.SUBMITTED:
        assignment.draft = _withdraw(assignment)
    elif assignment.item.purpose == Item.Purpose.WORK:
        if assignment.item.claimed_count >= assignment.item.overlap:
            raise Conflict("Someone else has got this item meanwhile, and it needs no other annotation.")
        queue.change_claimed_count(assignment.item_id, 1)
    assignment.state, assignment.reason, assignment.finished_at = State.LOCKED, "", None
    assignment.lock_expires_at, assignment.draft_saved_at = queue.new_lock_expiry(campaign), timezone.now()
    assignment.save()
    return assignment


def _require_undoable(assignment: Assignment, annotator: Annotator) -> None:
    campaign = assignment.item.campaign
    if assignment.is_adjudication or assignment.item.purpose == Item.Purpose.PRACTICE:
        raise Conflict(
            "Practice items and adjudications cannot be undone; open the item to change the answer."
        )
    last = list_history(annotator, campaign).first()
    is_finished = assignment.state in (State.SUBMITTED, State.SKIPPED, State.FLAGGED)
    if not is_finished or last is None or last.pk != assignment.pk:
        raise Conflict("Only what you did last can be undone; open an earlier item in My work to edit it.")


def _withdraw(assignment: Assignment) -> dict[str, str]:
    """Let the annotation count no longer. Its answers, as fields of the form."""
    counted = list(assignment.annotations.filter(is_surplus=False))
    if len(counted) != 1:
        raise Conflict("This annotation has been edited; open the item to change it once more.")
    annotation = counted[0]
    Annotation.objects.filter(pk=annotation.pk).update(is_surplus=True, withdrawn_at=timezone.now())
    work = Item.objects.filter(pk=assignment.item_id, purpose=Item.Purpose.WORK)
    work.update(completed_count=F("completed_count") - 1)
    return annotation_form_fields(annotation, assignment.item.campaign, present_item(assignment))
