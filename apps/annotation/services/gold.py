"""Items with a known answer: gold items, practice items and examples.

The known answer is an adjudication.
"""

from django.db import transaction
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.services import record_audit
from apps.annotation.gold import expected_annotation, gold_accuracies
from apps.annotation.models import Annotator, Assignment, Campaign, Item, Participation
from apps.annotation.services.campaigns import campaign_path
from apps.annotation.services.items import recount
from apps.core.errors import Conflict
from apps.webhooks.services import alert

# Answered gold items before accuracy is checked; where a campaign has fewer, all of them, but at least the second.
MIN_GOLD_ITEMS, MIN_GOLD_ITEMS_OF_FEW = 5, 3


@transaction.atomic
def start_adjudication(*, item: Item, annotator: Annotator) -> Assignment:
    """The reviewer's adjudication assignment, new or existing. Other annotations stay unchanged."""
    assignment, _ = Assignment.objects.get_or_create(
        item=item,
        annotator=annotator,
        is_adjudication=True,
        defaults={"state": Assignment.State.ADJUDICATING},
    )
    return assignment


@transaction.atomic
def set_item_purpose(*, item: Item, purpose: str, explanation: str = "", by: User | None = None) -> Item:
    """Make an item gold, practice, an example, or work again.

    Raises Conflict for an item without an adjudication.
    """
    item = Item.objects.select_for_update(no_key=True).select_related("campaign").get(pk=item.pk)
    if purpose != Item.Purpose.WORK and expected_annotation(item) is None:
        raise Conflict("The item has no correct answer yet; adjudicate it first.")
    item.purpose = Item.Purpose(purpose)
    item.explanation = explanation.strip()
    item.overlap = item.campaign.overlap if purpose == Item.Purpose.WORK else 0
    item.claimed_count = item.completed_count = 0
    item.save(update_fields=["purpose", "explanation", "overlap", "claimed_count", "completed_count"])
    recount([item.pk])
    record_audit(
        project=item.campaign.project, actor=by, verb="item.purpose_set", target=f"item {item.pk}",
        data={"campaign": item.campaign.name, "purpose": purpose},
    )  # fmt: skip
    item.refresh_from_db()
    return item


def check_gold(campaign: Campaign, annotator: Annotator) -> None:
    """Pause an annotator below the gold accuracy threshold. Needs a transaction."""
    there = Item.objects.filter(campaign=campaign, purpose=Item.Purpose.GOLD).count()
    standing = Participation.objects.filter(campaign=campaign, annotator=annotator).first()
    since = None if standing is None else standing.gold_counted_from
    mine = gold_accuracies(campaign, annotator=annotator, since=since).get(annotator.name)
    if (
        mine is None
        or mine.items < max(MIN_GOLD_ITEMS_OF_FEW, min(MIN_GOLD_ITEMS, there))
        or 100 * mine.n >= campaign.gold_threshold * mine.of
    ):
        return
    if standing is not None and standing.paused_at is not None:
        return
    share = f"{mine.n} of {mine.of}"
    Participation.objects.update_or_create(
        campaign=campaign,
        annotator=annotator,
        defaults={
            "paused_at": timezone.now(),
            "reason": f"{share} of your answers to items with a known answer were correct; this campaign requires "
            f"{campaign.gold_threshold} %. The researchers have been notified. Please read the guidelines again.",
        },
    )
    record_audit(
        project=campaign.project, actor="gold check", verb="annotator.paused", target=annotator.name,
        data={"campaign": campaign.name, "right": share},
    )  # fmt: skip
    alert(
        campaign.project,
        name="annotator.paused",
        detail=f"An annotator of {campaign.name} is paused: {share} answers to gold items were correct; "
        f"the campaign requires {campaign.gold_threshold} %.",
        path=campaign_path(campaign),
    )


@transaction.atomic
def resume_annotator(*, campaign: Campaign, annotator: Annotator, by: User) -> None:
    """End an annotator's pause; earlier answers to gold items no longer count."""
    rows = Participation.objects.filter(campaign=campaign, annotator=annotator, paused_at__isnull=False)
    if not rows.update(paused_at=None, reason="", gold_counted_from=timezone.now()):
        raise Conflict(f"{annotator} is not paused in this campaign.")
    record_audit(
        project=campaign.project, actor=by, verb="annotator.resumed", target=annotator.name,
        data={"campaign": campaign.name},
    )  # fmt: skip
