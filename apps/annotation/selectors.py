"""Reads that several callers share. What an annotator sees is always read through her own Annotator row."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Sum

from apps.accounts.models import Project
from apps.annotation.alignment import Alignment, align
from apps.annotation.kinds import KINDS, Shown
from apps.annotation.models import Annotator, Assignment, Campaign, Item, Submission
from apps.core.errors import NotFound
from apps.trajectories.selectors import load_trajectories

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
    """A campaign as one annotator sees it. left: up to COUNTED. pace: seconds per judgement, lately."""

    campaign: Campaign
    mine: int
    left: int
    pace: float | None

    @property
    def is_workable(self) -> bool:
        return self.left > 0 and self.campaign.state == Campaign.State.OPEN

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
    sums = Item.objects.filter(campaign=campaign).aggregate(
        n=Count("pk"), wanted=Sum("wanted"), done=Sum("done")
    )
    leased = Assignment.objects.filter(item__campaign=campaign, state=State.LEASED).count()
    return Progress(sums["n"], sums["wanted"] or 0, sums["done"] or 0, leased)


def people_of(campaign: Campaign) -> QuerySet[Annotator]:
    """Everybody who was given something, with counts and active seconds; for researchers."""

    def how_many(state: str) -> Count:
        return Count("assignments", filter=Q(assignments__state=state, assignments__item__campaign=campaign))

    mine = Q(assignments__item__campaign=campaign)
    return (
        Annotator.objects.filter(mine)
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
    rows = Campaign.objects.filter(Q(state=Campaign.State.OPEN) | worked, project=project).select_related(
        "project"
    )
    mine = [my_campaign(campaign, annotator) for campaign in rows.order_by("-created_at", "-pk")]
    return sorted(mine, key=lambda one: not one.is_workable)


def my_campaign(campaign: Campaign, annotator: Annotator) -> MyCampaign:
    mine = Assignment.objects.filter(annotator=annotator, item__campaign=campaign)
    return MyCampaign(
        campaign,
        mine.filter(state=State.SUBMITTED).count(),
        _left(campaign, annotator),
        _pace(mine),
    )


def _left(campaign: Campaign, annotator: Annotator) -> int:
    """What she could still judge: items never given to her, and those she began."""
    begun = Assignment.objects.filter(item=OuterRef("pk"), annotator=annotator)
    over = begun.exclude(state__in=[State.LEASED, State.EXPIRED])
    held = begun.filter(state=State.LEASED)
    rows = Item.objects.filter(~Exists(over), Q(taken__lt=F("wanted")) | Exists(held), campaign=campaign)
    return rows[: COUNTED + 1].count()


def _pace(mine: QuerySet[Assignment]) -> float | None:
    recent = mine.filter(state=State.SUBMITTED, active_seconds__gt=0).order_by("-finished_at")
    seconds = sorted(recent.values_list("active_seconds", flat=True)[:RECENT])
    return seconds[len(seconds) // 2] if seconds else None


def assignment_of(annotator: Annotator, pk: int) -> Assignment:
    """The annotator's own assignment; anybody else's is not there."""
    rows = Assignment.objects.filter(annotator=annotator).select_related(
        "item__task", "item__campaign__project"
    )
    assignment = rows.filter(pk=pk).first()
    if assignment is None:
        raise NotFound(f"There is no item {pk} of yours in this project.")
    return assignment


def history_of(annotator: Annotator, campaign: Campaign | None = None) -> QuerySet[Assignment]:
    """What she finished, the newest first."""
    rows = Assignment.objects.filter(annotator=annotator, finished_at__isnull=False)
    if campaign is not None:
        rows = rows.filter(item__campaign=campaign)
    return rows.select_related("item__task", "item__campaign").order_by("-finished_at", "-pk")


def shown_of(assignment: Assignment) -> Shown:
    places = assignment.item.places.select_related("trajectory").order_by("position")
    return Shown([place.trajectory for place in places], assignment.swapped)


def last_submission(assignment: Assignment) -> Submission | None:
    return assignment.submissions.order_by("-revision").first()


def fields_of(assignment: Assignment, shown: Shown) -> dict[str, str]:
    """What the form starts with: the draft, else what was said last."""
    if assignment.draft:
        return dict(assignment.draft)
    last = last_submission(assignment)
    out: dict[str, str] = {}
    for name in assignment.item.campaign.kinds if last else ():
        out |= KINDS[name].fields(KINDS[name].of(last), shown)  # type: ignore[arg-type]
    return out


def alignment_of(shown: Shown) -> Alignment:
    """How the shown sides stand beside each other; one trajectory alone has no prefix."""
    return _alignment(tuple(shown.on_side(side).pk for side in range(len(shown.trajectories))))


@lru_cache(maxsize=256)  # stored trajectories never change, and an alignment is a few numbers
def _alignment(keys: Sequence[int]) -> Alignment:
    found = load_trajectories(keys)
    steps = [found[key].steps for key in keys]
    return align(steps[0], steps[1] if len(steps) > 1 else ())
