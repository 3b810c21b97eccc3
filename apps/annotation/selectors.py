"""Reads that several callers share. What an annotator sees is always read through her own Annotator row."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from random import Random

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Sum

from apps.accounts.models import Project
from apps.annotation.feedback_types import KINDS, Shown
from apps.annotation.models import (
    Annotation,
    Annotator,
    Assignment,
    Campaign,
    Item,
    ItemTrajectory,
    Participation,
)
from apps.core.errors import NotFound
from apps.rubrics.models import Criterion, RubricCriterion

State = Assignment.State
COUNTED = 1000  # how far what is left is counted for an annotator: enough to plan a day
RECENT = 20  # judgements that make one's pace


@dataclass(frozen=True, slots=True)
class Progress:
    items: int
    wanted: int
    done: int
    leased: int

    @property
    def percent(self) -> int:
        return 100 * self.done // self.wanted if self.wanted else 0


@dataclass(frozen=True, slots=True)
class MyCampaign:
    """A campaign as one annotator sees it. left: up to COUNTED. pace: seconds per judgement, lately.

    practice: items she is to practise on first. paused: why nothing is handed out to her. examples: to be looked at.
    """

    campaign: Campaign
    mine: int
    left: int
    pace: float | None
    practice: int = 0
    paused: str = ""
    examples: tuple[Item, ...] = ()

    @property
    def is_workable(self) -> bool:
        is_open = self.campaign.state == Campaign.State.OPEN and not self.campaign.is_over
        return is_open and not self.paused and self.left + self.practice > 0

    @property
    def has_enough(self) -> bool:
        return (
            self.campaign.max_items_per_annotator is not None
            and self.mine >= self.campaign.max_items_per_annotator
        )

    @property
    def left_is_more(self) -> bool:
        return self.left > COUNTED

    @property
    def minutes_left(self) -> int | None:
        return None if self.pace is None else max(1, round(self.left * self.pace / 60))


def campaign_in(project: Project, pk: int) -> Campaign:
    campaign = Campaign.objects.select_related("project").filter(project=project, pk=pk).first()
    if campaign is None:
        raise NotFound(f"There is no campaign {pk} in this project.")
    return campaign


def progress_of(campaign: Campaign) -> Progress:
    work = Item.objects.filter(campaign=campaign, purpose=Item.Purpose.WORK)
    sums = work.aggregate(n=Count("pk"), wanted=Sum("overlap"), done=Sum("completed_count"))
    leased = Assignment.objects.filter(item__campaign=campaign, state=State.LOCKED).count()
    return Progress(sums["n"], sums["wanted"] or 0, sums["done"] or 0, leased)


def people_of(campaign: Campaign) -> QuerySet[Annotator]:
    """Everybody who was given something, with counts and active seconds; for researchers."""

    def how_many(state: str) -> Count:
        return Count("assignments", filter=mine & Q(assignments__state=state))

    mine = Q(assignments__item__campaign=campaign, assignments__is_adjudication=False)
    return (
        Annotator.objects.filter(mine & ~Q(assignments__state=State.BY_JUDGE))
        .annotate(
            submitted=how_many(State.SUBMITTED),
            skipped=how_many(State.SKIPPED),
            flagged=how_many(State.FLAGGED),
            seconds=Sum("assignments__active_seconds", filter=mine),
        )
        .select_related("user")
        .order_by("-submitted", "name")
    )


def flagged_in(campaign: Campaign) -> QuerySet[Assignment]:
    rows = Assignment.objects.filter(item__campaign=campaign, state=State.FLAGGED)
    return rows.select_related("item__task", "annotator").order_by("-finished_at")


def my_campaigns(project: Project, annotator: Annotator) -> list[MyCampaign]:
    """Open ones first, then those she worked in."""
    worked = Exists(Assignment.objects.filter(item__campaign=OuterRef("pk"), annotator=annotator))
    rows = Campaign.objects.filter(Q(state=Campaign.State.OPEN) | worked, project=project)
    rows = rows.exclude(state=Campaign.State.ARCHIVED).select_related("project")
    mine = [my_campaign(campaign, annotator) for campaign in rows.order_by("-created_at", "-pk")]
    return sorted(mine, key=lambda one: not one.is_workable)


def my_campaign(campaign: Campaign, annotator: Annotator) -> MyCampaign:
    mine = judged_by(annotator, campaign)
    judged, left = mine.count(), _left(campaign, annotator)
    if campaign.max_items_per_annotator is not None:
        left = min(left, max(0, campaign.max_items_per_annotator - judged))
    practice = Item.objects.filter(campaign=campaign, purpose=Item.Purpose.PRACTICE)
    begun = Assignment.objects.filter(item=OuterRef("pk"), annotator=annotator)
    over = begun.exclude(state__in=[State.LOCKED, State.EXPIRED])
    paused = pause_of(campaign, annotator)
    return MyCampaign(
        campaign,
        judged,
        left,
        _pace(mine),
        practice.filter(~Exists(over)).count(),
        paused.reason if paused else "",
        tuple(examples_of(campaign)),
    )


def _left(campaign: Campaign, annotator: Annotator) -> int:
    """What she could still judge: items never given to her, and those she began."""
    begun = Assignment.objects.filter(item=OuterRef("pk"), annotator=annotator)
    over = begun.exclude(state__in=[State.LOCKED, State.EXPIRED, State.ASSIGNED])
    held = begun.filter(state__in=[State.LOCKED, State.ASSIGNED])
    rows = Item.objects.filter(
        ~Exists(over), Q(claimed_count__lt=F("overlap")) | Exists(held), campaign=campaign
    )
    rows = rows.exclude(purpose=Item.Purpose.PRACTICE)
    if campaign.in_pilot:
        rows = rows.filter(Q(in_pilot=True) | Exists(held))
    return rows[: COUNTED + 1].count()


def _pace(mine: QuerySet[Assignment]) -> float | None:
    recent = mine.filter(active_seconds__gt=0).order_by("-finished_at")
    seconds = sorted(recent.values_list("active_seconds", flat=True)[:RECENT])
    return seconds[len(seconds) // 2] if seconds else None


def pause_of(campaign: Campaign, annotator: Annotator) -> Participation | None:
    """Why nothing is handed out to her, if so."""
    rows = Participation.objects.filter(campaign=campaign, annotator=annotator, paused_at__isnull=False)
    return rows.first()


def judged_by(annotator: Annotator, campaign: Campaign) -> QuerySet[Assignment]:
    """What she judged as work. Gold too: she does not know which it is."""
    rows = Assignment.objects.filter(annotator=annotator, item__campaign=campaign, state=State.SUBMITTED)
    return rows.filter(is_adjudication=False).exclude(item__purpose=Item.Purpose.PRACTICE)


def assignment_of(annotator: Annotator, pk: int) -> Assignment:
    """The annotator's own assignment; anybody else's is not there."""
    rows = Assignment.objects.filter(annotator=annotator).select_related(
        "item__task", "item__campaign__project"
    )
    assignment = rows.filter(pk=pk).first()
    if assignment is None:
        raise NotFound(f"There is no item {pk} of yours in this project.")
    assignment.annotator = annotator  # which need not be read again
    return assignment


def history_of(
    annotator: Annotator, campaign: Campaign | None = None, *, adjudications: bool = False
) -> QuerySet[Assignment]:
    """What she finished, or adjudicated, the newest first."""
    rows = Assignment.objects.filter(
        annotator=annotator, finished_at__isnull=False, is_adjudication=adjudications
    )
    if campaign is not None:
        rows = rows.filter(item__campaign=campaign)
    return rows.select_related("item__task", "item__campaign").order_by("-finished_at", "-pk")


def shown_of(assignment: Assignment) -> Shown:
    places = assignment.item.places.select_related("trajectory").order_by("position")
    trajectories = [place.trajectory for place in places]
    campaign = assignment.item.campaign
    return Shown(
        trajectories, order_of(assignment, len(trajectories)), criteria_of(campaign), campaign.options
    )


def order_of(assignment: Assignment, count: int) -> list[int]:
    """The stored positions from left to right: two by the stored coin, more drawn by the assignment's own number.

    An adjudicator sees them as they are stored, like the words of the others beside them; so does who practises, or
    looks at an example.
    """
    order = list(range(count))
    if assignment.is_adjudication:
        return order
    if count == 2:
        return order[::-1] if assignment.swapped else order
    as_stored = (Item.Purpose.PRACTICE, Item.Purpose.EXAMPLE)
    if assignment.item.campaign.swap_sides and assignment.item.purpose not in as_stored:
        Random(assignment.pk).shuffle(order)  # noqa: S311 - a layout, no secret
    return order


def criteria_of(campaign: Campaign) -> list[Criterion]:
    """Of the campaign's rubric, in its order."""
    if campaign.rubric_id is None:
        return []
    entries = RubricCriterion.objects.filter(rubric=campaign.rubric_id).select_related("criterion")
    return [entry.criterion for entry in entries.order_by("position")]


def stored(item: Item) -> Shown:
    """An item as nobody saw it: by stored position. For those who look at what several people said."""
    places = item.places.select_related("trajectory").order_by("position")
    trajectories = [place.trajectory for place in places]
    campaign = item.campaign
    return Shown(trajectories, range(len(trajectories)), criteria_of(campaign), campaign.options)


def runs_of_items(items: Sequence[int]) -> dict[int, list[int]]:
    """By item, the keys of its trajectories in their order."""
    found: dict[int, list[int]] = {pk: [] for pk in items}
    places = ItemTrajectory.objects.filter(item__in=items).order_by("item", "position")
    for item, trajectory in places.values_list("item_id", "trajectory_id").iterator():
        found[item].append(trajectory)
    return found


def said_of(item: Item, shown: Shown) -> list[tuple[Annotation, list[tuple[str, str]]]]:
    """Each annotator's newest counted annotation on an item, adjudications first, and what it says by `in_words`."""
    rows = Annotation.objects.filter(assignment__item=item, is_surplus=False)
    rows = (
        rows.order_by("-assignment__is_adjudication", "assignment", "-revision")
        .distinct("assignment__is_adjudication", "assignment")
        .select_related("assignment__annotator")
    )
    return [(one, in_words(one, shown)) for one in rows]


def in_words(annotation: Annotation, shown: Shown) -> list[tuple[str, str]]:
    """(kind, words) for what an annotation says."""
    found = ((kind.label, kind.summary(kind.rows_of(annotation), shown)) for kind in KINDS.values())
    return [(label, words) for label, words in found if words]


def item_in(project: Project, pk: int) -> Item:
    rows = Item.objects.select_related("task", "campaign__project")
    item = rows.filter(campaign__project=project, pk=pk).first()
    if item is None:
        raise NotFound(f"There is no item {pk} in this project.")
    return item


def decided_of(items: Collection[int]) -> set[int]:
    """Those of the items that are adjudicated."""
    rows = Assignment.objects.filter(item__in=items, is_adjudication=True, state=State.SUBMITTED)
    return set(rows.values_list("item_id", flat=True))


def known_answers(campaign: Campaign) -> dict[str, int]:
    """How many items are gold, how many practice, and how many examples."""
    rows = Item.objects.filter(campaign=campaign).exclude(purpose=Item.Purpose.WORK)
    return dict(rows.values_list("purpose").annotate(n=Count("pk")))


def examples_of(campaign: Campaign) -> QuerySet[Item]:
    """What is shown with the guidelines, in the order it was made."""
    rows = Item.objects.filter(campaign=campaign, purpose=Item.Purpose.EXAMPLE)
    return rows.select_related("task").order_by("pk")


def paused_in(campaign: Campaign) -> QuerySet[Participation]:
    rows = Participation.objects.filter(campaign=campaign, paused_at__isnull=False)
    return rows.select_related("annotator").order_by("paused_at")


def judged_items(campaign: Campaign, *, by: str = "", purpose: str = "") -> QuerySet[Item]:
    """Items somebody judged, or one annotator did, the newest first; all of a purpose, where one is named."""
    if purpose:
        return Item.objects.filter(campaign=campaign, purpose=purpose).select_related("task").order_by("-pk")
    said = Assignment.objects.filter(item=OuterRef("pk"), state=State.SUBMITTED, is_adjudication=False)
    if by:
        said = said.filter(annotator__name=by)
    rows = Item.objects.filter(Exists(said), campaign=campaign).select_related("task")
    return rows.order_by("-pk")


def last_annotation(assignment: Assignment) -> Annotation | None:
    return assignment.annotations.order_by("-revision").first()


def fields_of(assignment: Assignment, shown: Shown) -> dict[str, str]:
    """What the form starts with: the draft, else what was said last."""
    if assignment.draft:
        return dict(assignment.draft)
    last = last_annotation(assignment)
    return said_in(last, assignment.item.campaign, shown) if last else {}


def said_in(annotation: Annotation, campaign: Campaign, shown: Shown) -> dict[str, str]:
    """The fields of the form that say what an annotation says."""
    out: dict[str, str] = {}
    for name in campaign.feedback_types:
        out |= KINDS[name].form_values(KINDS[name].rows_of(annotation), shown)
    return out
