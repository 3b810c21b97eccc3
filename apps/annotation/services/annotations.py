"""Writing annotations. They are append-only: an edit is a new revision that holds the whole answer."""

import hashlib
import uuid
from collections.abc import Mapping, Sequence

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from apps.accounts.models import User
from apps.annotation.feedback_types import KINDS
from apps.annotation.models import Annotation, Assignment, Campaign, FeedbackRecord, Item
from apps.annotation.selectors import shown_of
from apps.annotation.services import gold, queue
from apps.core.errors import Conflict, DomainError, Forbidden

State = Assignment.State


@transaction.atomic
def submit_annotation(
    *,
    assignment: Assignment,
    idempotency_key: uuid.UUID,
    judgements: Sequence[FeedbackRecord],
    by: User,
    active_seconds: float | None = None,
) -> Annotation:
    """Keep what was said. The same form again gives back the annotation that is there.

    The same key with other answers is an edit: she heard nothing of the first sending, or the browser kept the page.
    After the lease ended it counts if the item still wants one, and is kept aside if not. An edit is the next revision.
    """
    assignment = _locked(assignment, by)
    digest = _digest(judgements)
    for key in (idempotency_key, uuid.uuid5(idempotency_key, digest)):
        known = Annotation.objects.filter(idempotency_key=key).first()
        if known is None:
            idempotency_key = key
            break
        if known.assignment_id != assignment.pk:
            raise Conflict("This form was already used for another item; open the page anew.")
        if known.digest in (digest, None):
            return known
    campaign = assignment.item.campaign
    _check(assignment, judgements)
    last = assignment.annotations.order_by("-revision").first()
    annotation = Annotation.objects.create(
        assignment=assignment,
        revision=last.revision + 1 if last else 1,
        idempotency_key=idempotency_key,
        digest=digest,
        campaign_version=campaign.version,
        active_seconds=_capped(assignment, active_seconds),
        # What counted once stands; what was kept aside counts when the item wants one again.
        is_surplus=not ((last is not None and not last.is_surplus) or _count(assignment)),
    )
    for kind in KINDS.values():
        kind.save(annotation, judgements)
    if not annotation.is_surplus:
        assignment.state, assignment.lock_expires_at, assignment.reason = State.SUBMITTED, None, ""
    assignment.draft, assignment.draft_saved_at = {}, None
    assignment.finished_at = timezone.now()
    if annotation.active_seconds is not None:
        assignment.active_seconds = max(assignment.active_seconds, annotation.active_seconds)
    assignment.save()
    if assignment.item.purpose == Item.Purpose.GOLD and not assignment.is_adjudication:
        gold.check_gold(campaign, assignment.annotator)
    return annotation


@transaction.atomic
def save_draft(
    *,
    assignment: Assignment,
    fields: Mapping[str, str],
    idempotency_key: uuid.UUID,
    by: User,
    active_seconds: float | None = None,
) -> Assignment:
    """Keep a form that is not submitted yet, and renew the lease: whoever writes is at work.

    idempotency_key: of the form; a draft that arrives after its own annotation is old news.
    """
    assignment = _locked(assignment, by)
    if Annotation.objects.filter(idempotency_key=idempotency_key).exists():
        return assignment
    campaign = assignment.item.campaign
    if assignment.state == State.LOCKED:
        assignment.lock_expires_at = queue.new_lock_expiry(campaign)
    elif (
        assignment.state == State.EXPIRED
        and campaign.state == Campaign.State.OPEN
        and not _holds_another(assignment)
    ):
        queue.revive(assignment, campaign)
    assignment.draft, assignment.draft_saved_at = dict(fields), timezone.now()
    assignment.active_seconds = max(assignment.active_seconds, _capped(assignment, active_seconds) or 0)
    assignment.save(update_fields=["draft", "draft_saved_at", "active_seconds", "lock_expires_at"])
    return assignment


def skip_assignment(*, assignment: Assignment, reason: str, by: User) -> Assignment:
    """Leave this item to others."""
    return _leave(assignment, State.SKIPPED, reason, by)


def flag_assignment(*, assignment: Assignment, reason: str, by: User) -> Assignment:
    """Tell the researchers that something is wrong with this item, and leave it to others."""
    return _leave(assignment, State.FLAGGED, reason, by)


@transaction.atomic
def _leave(assignment: Assignment, state: Assignment.State, reason: str, by: User) -> Assignment:
    if not reason.strip():
        raise DomainError(
            "Say in a few words why; it helps whoever looks after this campaign.", pointer="/reason"
        )
    assignment = _locked(assignment, by)
    if assignment.state == state:
        return assignment
    if assignment.state == State.SUBMITTED:
        raise Conflict("This item is already judged; edit the judgement instead.")
    if assignment.is_adjudication:
        raise Conflict("An adjudication is not left to others; leave the page, and it stays in the queue.")
    if assignment.state in (State.LOCKED, State.ASSIGNED):
        queue.hold(assignment.item_id, -1)
    assignment.state, assignment.lock_expires_at, assignment.reason = state, None, reason.strip()[:2000]
    assignment.finished_at = timezone.now()
    assignment.save(update_fields=["state", "lock_expires_at", "reason", "finished_at"])
    return assignment


def _digest(judgements: Sequence[FeedbackRecord]) -> str:
    """SHA-256 of what is said, whatever its order."""
    said = sorted(repr((row.digest_name, row.answer)) for row in judgements)
    return hashlib.sha256("\n".join(said).encode()).hexdigest()


def _locked(assignment: Assignment, by: User) -> Assignment:
    """The assignment, its item locked first. Only its own annotator may write it."""
    Item.objects.select_for_update(no_key=True).get(pk=assignment.item_id)
    rows = Assignment.objects.select_related("item__campaign", "annotator").select_for_update(
        no_key=True, of=("self",)
    )
    assignment = rows.get(pk=assignment.pk)
    if assignment.annotator.user_id != by.pk:
        raise Forbidden("This item was given to somebody else.")
    return assignment


def _count(assignment: Assignment) -> bool:
    """Count an annotation on the item; False where the lease is gone and the item wants no more."""
    item = assignment.item
    if assignment.is_adjudication or item.purpose != Item.Purpose.WORK:
        return True
    lock_is_gone = assignment.state not in (State.LOCKED, State.ASSIGNED)
    if lock_is_gone and item.claimed_count >= item.overlap:
        return False
    Item.objects.filter(pk=item.pk).update(
        claimed_count=F("claimed_count") + int(lock_is_gone), completed_count=F("completed_count") + 1
    )
    return True


def _check(assignment: Assignment, judgements: Sequence[FeedbackRecord]) -> None:
    campaign, shown = assignment.item.campaign, shown_of(assignment)
    for name in campaign.feedback_types:
        KINDS[name].validate(judgements, shown, len(campaign.feedback_types) == 1)
    slots = [row.slot for row in judgements if row.question_fields is not None]
    if len(set(slots)) < len(slots):
        raise DomainError("One question is answered twice; say one thing.")
    allowed = tuple(KINDS[name].model for name in campaign.feedback_types)
    stranger = next((row for row in judgements if not isinstance(row, allowed)), None)
    if stranger is not None:
        raise DomainError(
            f"The campaign {campaign.name!r} does not ask for a {type(stranger).__name__.lower()}."
        )


def _capped(assignment: Assignment, seconds: float | None) -> float | None:
    """Nobody works longer than time has passed since she got the item."""
    if seconds is None:
        return None
    passed = (timezone.now() - assignment.created_at).total_seconds()
    return max(0.0, min(seconds, passed))


def _holds_another(assignment: Assignment) -> bool:
    return Assignment.objects.filter(annotator=assignment.annotator_id, state=State.LOCKED).exists()
