"""Creating and editing campaigns. `version` grows when what annotators see changes."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, F, Sum
from django.urls import reverse
from django.utils import timezone

from apps.accounts.actors import Actor, person_of
from apps.accounts.models import Project
from apps.annotation.feedback_types import FEEDBACK_TYPES
from apps.annotation.missing_rubrics import types_with_criteria, types_without_rubric
from apps.annotation.models import Annotator, Assignment, Campaign, Item
from apps.annotation.presentation import rubric_criteria
from apps.annotation.services.closed_campaigns import require_unclosed
from apps.core.errors import Conflict, DomainError
from apps.rubrics.models import Criterion, Rubric
from apps.webhooks.models import WebhookEvent
from apps.webhooks.services import announce

PRESENTED_FIELDS = (
    "feedback_types",
    "options",
    "rubric",
    "guidelines",
    "swap_sides",
    "blind_agents",
    "show_outcome",
    "suggester",
)
# What a duplicate takes over.
COPIED_FIELDS = (
    *(
        "feedback_types",
        "options",
        "rubric",
        "guidelines",
        "overlap",
        "ordering",
        "swap_sides",
        "blind_agents",
    ),
    *(
        "show_outcome",
        "lock_minutes",
        "max_items_per_annotator",
        "gold_percent",
        "gold_threshold",
        "hourly_pay",
    ),
)
CHANGEABLE = (
    *(
        "name",
        *PRESENTED_FIELDS,
        "overlap",
        "ordering",
        "lock_minutes",
        "max_items_per_annotator",
        "deadline",
    ),
    *("gold_percent", "gold_threshold", "suggester", "suggestion_percent", "hourly_pay"),
)
MAX_PILOT_ITEMS = 1000


@transaction.atomic
def create_campaign(
    *,
    project: Project,
    name: str,
    feedback_types: Sequence[str],
    options: Mapping[str, Mapping[str, str]] | None = None,
    rubric: Rubric | None = None,
    by: Actor = None,
    guidelines: str = "",
    overlap: int = 1,
    ordering: str = Campaign.Ordering.RANDOM,
    swap_sides: bool = True,
    blind_agents: bool = True,
    show_outcome: bool = False,
    lock_minutes: int = 30,
    max_items_per_annotator: int | None = None,
    deadline: datetime | None = None,
    gold_percent: int = 10,
    gold_threshold: int = 70,
    hourly_pay: Decimal | None = None,
    suggester: Annotator | None = None,
    suggestion_percent: int = 50,
    is_draft: bool = False,
) -> Campaign:
    """is_draft: it is opened later; until then annotators do not see it."""
    campaign = Campaign(
        project=project,
        name=name.strip(),
        feedback_types=list(feedback_types),
        options={kind: dict(said) for kind, said in (options or {}).items()},
        rubric=rubric,
        guidelines=guidelines,
        overlap=overlap,
        ordering=ordering,
        swap_sides=swap_sides,
        blind_agents=blind_agents,
        show_outcome=show_outcome,
        lock_minutes=lock_minutes,
        max_items_per_annotator=max_items_per_annotator,
        deadline=deadline,
        gold_percent=gold_percent,
        gold_threshold=gold_threshold,
        hourly_pay=hourly_pay,
        suggester=suggester,
        suggestion_percent=suggestion_percent,
        state=Campaign.State.DRAFT if is_draft else Campaign.State.OPEN,
        created_by=person_of(by),
    )
    _save(campaign)
    return campaign


def duplicate_campaign(*, campaign: Campaign, by: Actor) -> Campaign:
    """A draft with the same settings, without items."""
    names = set(campaign.project.campaigns.values_list("name", flat=True))
    numbered = (
        f"{campaign.name[:180]} (copy{number})" for number in ("", *(f" {n}" for n in range(2, 1000)))
    )
    fields = {name: getattr(campaign, name) for name in COPIED_FIELDS}
    name = next(name for name in numbered if name not in names)
    return create_campaign(project=campaign.project, name=name, by=by, is_draft=True, **fields)


@transaction.atomic
def update_campaign(*, campaign: Campaign, **changes: Any) -> Campaign:
    """Change fields; a different overlap also goes to the items already there."""
    unknown = next((name for name in changes if name not in CHANGEABLE), None)
    if unknown is not None:
        raise DomainError(
            f"A campaign has no editable field {unknown!r}; editable are {', '.join(CHANGEABLE)}."
        )
    campaign = _locked(campaign)
    changed = {name for name, value in changes.items() if getattr(campaign, name) != value}
    if changed & {"feedback_types", "options"} and campaign.items.exists():
        raise Conflict(
            "The feedback types of a campaign with items cannot be changed; create another campaign."
        )
    for name in changed:
        setattr(campaign, name, changes[name])
    if changed & set(PRESENTED_FIELDS):
        campaign.version += 1
    _save(campaign)
    if "overlap" in changed:
        rows = Item.objects.filter(campaign=campaign, purpose=Item.Purpose.WORK, is_exclusive=False)
        rows.update(overlap=campaign.overlap)
    return campaign


@transaction.atomic
def open_campaign(*, campaign: Campaign) -> Campaign:
    """Imported feedback makes closed campaigns without a rubric, in which annotators would see no question."""
    if missing := types_without_rubric(_locked(campaign)):
        raise Conflict(
            f"{missing[0].label} needs a rubric: edit {campaign.name} to choose one, then open it.",
            pointer="/rubric",
        )
    return _set_state(campaign, Campaign.State.OPEN)


def pause_campaign(*, campaign: Campaign) -> Campaign:
    """Assign no new items; annotations in progress can still be submitted."""
    return _set_state(campaign, Campaign.State.PAUSED)


def close_campaign(*, campaign: Campaign) -> Campaign:
    return _set_state(campaign, Campaign.State.CLOSED)


def archive_campaign(*, campaign: Campaign) -> Campaign:
    """Close the campaign and hide it from lists. Its data is kept; opening it restores it."""
    return _set_state(campaign, Campaign.State.ARCHIVED)


@transaction.atomic
def start_pilot(*, campaign: Campaign, items: int) -> int:
    """Assign only this number of random items until `end_pilot`; how many there are."""
    if not 1 <= items <= MAX_PILOT_ITEMS:
        raise DomainError(f"A pilot must have between 1 and {MAX_PILOT_ITEMS} items.", pointer="/items")
    campaign = _locked(campaign)
    require_unclosed(campaign, "start a pilot")
    work = Item.objects.filter(campaign=campaign, purpose=Item.Purpose.WORK)
    drawn = list(work.order_by("random_key", "pk").values_list("pk", flat=True)[:items])
    if not drawn:
        raise Conflict("The campaign has no items; add items before you start a pilot.")
    work.filter(in_pilot=True).update(in_pilot=False)
    work.filter(pk__in=drawn).update(in_pilot=True)
    campaign.in_pilot = True
    campaign.save(update_fields=["in_pilot"])
    return len(drawn)


@transaction.atomic
def end_pilot(*, campaign: Campaign) -> Campaign:
    """Assign all items again."""
    campaign = _locked(campaign)
    campaign.in_pilot = False
    campaign.save(update_fields=["in_pilot"])
    return campaign


def announce_completed_campaigns() -> int:
    """Announce campaigns completed since the last call; how many. Called by beat.

    A completed campaign that gets more items can be completed again.
    """
    held = Assignment.objects.filter(is_adjudication=False)  # two partial indexes answer this
    busy = {
        pk
        for state in (Assignment.State.LOCKED, Assignment.State.ASSIGNED)
        for pk in held.filter(state=state).values_list("item__campaign", flat=True).distinct()
    }
    announced = 0
    for campaign in Campaign.objects.filter(state=Campaign.State.OPEN).select_related("project"):
        items = Item.objects.filter(campaign=campaign)
        # In the queue's order, so that the queue's partial index answers.
        wanting = (
            items.filter(claimed_count__lt=F("overlap"))
            .order_by("claimed_count", "random_key")
            .values("pk")[:1]
        )
        if campaign.pk in busy or wanting:
            Campaign.objects.filter(pk=campaign.pk, completed_at__isnull=False).update(completed_at=None)
        elif campaign.completed_at is None and items.filter(overlap__gt=0).exists():
            announced += _announce_completed(campaign)
    return announced


@transaction.atomic
def _announce_completed(campaign: Campaign) -> bool:
    if not Campaign.objects.filter(pk=campaign.pk, completed_at=None).update(completed_at=timezone.now()):
        return False  # another beat announced it
    sums = Item.objects.filter(campaign=campaign, overlap__gt=0).aggregate(
        n=Count("pk"), done=Sum("completed_count")
    )
    said = {
        "campaign": campaign.pk,
        "name": campaign.name,
        "items": sums["n"],
        "judgements": sums["done"],
    }
    announce(campaign.project, WebhookEvent.CAMPAIGN_DONE, said, path=campaign_path(campaign))
    return True


def campaign_path(campaign: Campaign) -> str:
    return reverse("annotation:campaign-detail", args=[campaign.project.slug, campaign.pk])


@transaction.atomic
def _set_state(campaign: Campaign, state: Campaign.State) -> Campaign:
    campaign = _locked(campaign)
    campaign.state = state
    campaign.save(update_fields=["state"])
    return campaign


def _locked(campaign: Campaign) -> Campaign:
    return Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)


def _save(campaign: Campaign) -> None:
    if not campaign.name:
        raise DomainError("A campaign needs a name.", pointer="/name")
    unknown = next((kind for kind in campaign.feedback_types if kind not in FEEDBACK_TYPES), None)
    if unknown is not None or not campaign.feedback_types:
        raise DomainError(
            f"A campaign needs at least one feedback type; allowed are {', '.join(FEEDBACK_TYPES)}.",
            pointer="/feedback_types",
        )
    # In the order of the table, each once.
    campaign.feedback_types = [name for name in FEEDBACK_TYPES if name in campaign.feedback_types]
    _check_options(campaign)
    if not 1 <= campaign.overlap <= 100:
        raise DomainError("The overlap (annotators per item) must be between 1 and 100.", pointer="/overlap")
    if campaign.max_items_per_annotator is not None and campaign.max_items_per_annotator < 1:
        raise DomainError(
            "The maximum of items per annotator must be 1 or more; leave it empty for no limit.",
            pointer="/max_items_per_annotator",
        )
    for name in ("gold_percent", "gold_threshold"):
        if not 0 <= getattr(campaign, name) <= 100:
            raise DomainError("A percentage must be between 0 and 100.", pointer=f"/{name}")
    if not 1 <= campaign.suggestion_percent <= 90:
        raise DomainError(
            "The share of items with a suggestion must be between 1 and 90 percent: items without one are compared "
            "with, and keep gold items from being recognized.",
            pointer="/suggestion_percent",
        )
    _check_suggester(campaign)
    if campaign.hourly_pay is not None and campaign.hourly_pay < 0:
        raise DomainError("Hourly pay cannot be negative.", pointer="/hourly_pay")
    if not 1 <= campaign.lock_minutes <= 1440:
        raise DomainError("The lock timeout must be between 1 and 1440 minutes.", pointer="/lock_minutes")
    try:
        with transaction.atomic():
            campaign.save()
    except IntegrityError as error:
        if "campaign_name_once" not in str(error):
            raise
        raise Conflict(
            f"This project already has a campaign called {campaign.name!r}; choose another name.",
            pointer="/name",
        ) from None


def _check_suggester(campaign: Campaign) -> None:
    suggester = campaign.suggester
    if suggester is None:
        return
    if suggester.project_id != campaign.project_id:
        raise DomainError(
            "This source of suggestions belongs to another project.", pointer="/suggester", status=404
        )
    if suggester.user_id is not None:
        raise DomainError(
            f"{suggester} is a person; suggestions come from a judge or from imported annotations.",
            pointer="/suggester",
        )


def _check_options(campaign: Campaign) -> None:
    """Keep the options of the campaign's feedback types, and check their values."""
    kept: dict[str, dict[str, str]] = {}
    for name in campaign.feedback_types:
        said = campaign.options.get(name, {})
        known = FEEDBACK_TYPES[name].options
        for option, value in said.items():
            allowed = [str(choice) for choice, _ in known[option].choices] if option in known else []  # type: ignore[union-attr, misc]
            if value not in allowed:
                raise DomainError(
                    f"{FEEDBACK_TYPES[name].label} has no {option} {value!r}; allowed are {', '.join(allowed)}.",
                    pointer=f"/options/{name}/{option}",
                )
        kept[name] = dict(said)
    campaign.options = {name: said for name, said in kept.items() if said}
    if missing := types_without_rubric(campaign):
        raise DomainError(f"{missing[0].label} needs a rubric; choose one.", pointer="/rubric")
    if campaign.rubric is not None and types_with_criteria(campaign):
        _check_answer_types(campaign, kept)
    if campaign.rubric is not None and campaign.rubric.project_id != campaign.project_id:
        raise DomainError("This rubric belongs to another project.", pointer="/rubric", status=404)


def _check_answer_types(campaign: Campaign, options: Mapping[str, Mapping[str, str]]) -> None:
    """Every feedback type that asks criteria has one, and every criterion is asked."""
    criteria = rubric_criteria(campaign)
    asking = [FEEDBACK_TYPES[name] for name in campaign.feedback_types]
    for kind in asking:
        if kind.needs_criteria(options[kind.name]) and not any(
            each.answer_type in kind.answer_types for each in criteria
        ):
            answers = " or ".join(Criterion.AnswerType(name).label.lower() for name in kind.answer_types)
            raise DomainError(
                f"{kind.label} needs a rubric with a criterion that is answered by {answers}; {campaign.rubric} has "
                "none.",
                pointer="/rubric",
            )
    asked = {answer_type for kind in asking for answer_type in kind.answer_types}
    left = next((each for each in criteria if each.answer_type not in asked), None)
    if left is not None:
        label = next(kind.label for kind in FEEDBACK_TYPES.values() if left.answer_type in kind.answer_types)
        raise DomainError(
            f"No feedback type of the campaign asks “{left.name}” of the rubric; add {label}, or choose another one.",
            pointer="/feedback_types",
        )
