"""Items with a known answer: gold, mixed into the work; practice, before it; examples, beside it.

The answer is an adjudication.
"""

from django.db import transaction
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.services import record_audit
from apps.annotation.gold import expected_of, gold_shares
from apps.annotation.models import Annotator, Assignment, Campaign, Item, Participation
from apps.annotation.services.campaigns import page_of
from apps.annotation.services.items import recount
from apps.core.errors import Conflict
from apps.webhooks.services import alert

# Gold items somebody has judged before her share of right answers means anything; all there are, where those are fewer.
LEAST, FEWEST = 5, 3


@transaction.atomic
def adjudicate(*, item: Item, annotator: Annotator) -> Assignment:
    """The reviewer's own place to say what is right; the judgements that are there stay. Begun, or found again."""
    assignment, _ = Assignment.objects.get_or_create(
        item=item,
        annotator=annotator,
        is_adjudication=True,
        defaults={"state": Assignment.State.ADJUDICATING},
    )
    return assignment


@transaction.atomic
def set_purpose(*, item: Item, purpose: str, explanation: str = "", by: User | None = None) -> Item:
    """Make an item gold, practice, an example, or work again.

    Raises Conflict for one whose right answer nobody has said.
    """
    item = Item.objects.select_for_update(no_key=True).select_related("campaign").get(pk=item.pk)
    if purpose != Item.Purpose.WORK and expected_of(item) is None:
        raise Conflict(
            "Say first what is right: adjudicate the item, and that is what others are held against."
        )
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
    """Pause an annotator whose answers to gold are too often wrong. Needs a transaction."""
    there = Item.objects.filter(campaign=campaign, purpose=Item.Purpose.GOLD).count()
    standing = Participation.objects.filter(campaign=campaign, annotator=annotator).first()
    since = None if standing is None else standing.gold_counted_from
    mine = gold_shares(campaign, annotator=annotator, since=since).get(annotator.name)
    if (
        mine is None
        or mine.items < max(FEWEST, min(LEAST, there))
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
            "reason": f"On items whose answer is known, {share} of your answers were as expected, and this campaign "
            f"asks for {campaign.gold_threshold} %. Whoever runs it sees this; meanwhile read the guidelines again.",
        },
    )
    record_audit(
        project=campaign.project, actor="gold check", verb="annotator.paused", target=annotator.name,
        data={"campaign": campaign.name, "right": share},
    )  # fmt: skip
    alert(
        campaign.project,
        name="annotator.paused",
        detail=f"An annotator of {campaign.name} is paused: {share} answers to gold were as expected, and it asks "
        f"for {campaign.gold_threshold} %.",
        path=page_of(campaign),
    )


@transaction.atomic
def let_go_on(*, campaign: Campaign, annotator: Annotator, by: User) -> None:
    """Let a paused annotator work again; what she said of gold until now is forgiven."""
    rows = Participation.objects.filter(campaign=campaign, annotator=annotator, paused_at__isnull=False)
    if not rows.update(paused_at=None, reason="", gold_counted_from=timezone.now()):
        raise Conflict(f"{annotator} is not paused in this campaign.")
    record_audit(
        project=campaign.project, actor=by, verb="annotator.resumed", target=annotator.name,
        data={"campaign": campaign.name},
    )  # fmt: skip
