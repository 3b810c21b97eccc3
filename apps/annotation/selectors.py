"""Reads that several callers share. What annotators see is always read through their own Annotator row."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Least

from apps.accounts.models import Project
from apps.annotation.feedback_types import FEEDBACK_TYPES
from apps.annotation.models import (
    Annotation,
    Annotator,
    Assignment,
    Campaign,
    Item,
    ItemTrajectory,
    Participation,
)
from apps.annotation.presentation import PresentedItem
from apps.core.errors import NotFound

State = Assignment.State


@dataclass(frozen=True, slots=True)
class Progress:
    """Of a campaign. required: items times overlap. completed: of these. more: annotations beyond the overlap."""

    items: int
    required: int
    completed: int
    more: int
    locked: int

    @property
    def annotations(self) -> int:
        return self.completed + self.more


def get_campaign(project: Project, pk: int) -> Campaign:
    campaign = Campaign.objects.select_related("project").filter(project=project, pk=pk).first()
    if campaign is None:
        raise NotFound(f"There is no campaign {pk} in this project.")
    return campaign


def get_campaign_by_name(project: Project, name: str, *, pointer: str | None = None) -> Campaign:
    campaign = project.campaigns.select_related("project", "rubric").filter(name=name).first()
    if campaign is None:
        raise NotFound(f"There is no campaign {name!r} in this project; create it first.", pointer=pointer)
    return campaign


def campaign_progress(campaign: Campaign) -> Progress:
    return campaign_progresses([campaign])[campaign.pk]


def campaign_progresses(campaigns: Iterable[Campaign]) -> dict[int, Progress]:
    """By key of the campaign, in two queries."""
    keys = [campaign.pk for campaign in campaigns]
    work = Item.objects.filter(campaign__in=keys, purpose=Item.Purpose.WORK)
    sums = work.values("campaign").annotate(
        n=Count("pk"),
        required=Sum("overlap"),
        counted=Sum(Least("completed_count", "overlap")),
        every=Sum("completed_count"),
    )
    held = Assignment.objects.filter(item__campaign__in=keys, state=State.LOCKED).values("item__campaign")
    locked = dict(held.annotate(n=Count("pk")).values_list("item__campaign", "n"))
    found = {
        row["campaign"]: Progress(
            row["n"],
            row["required"],
            row["counted"],
            row["every"] - row["counted"],
            locked.get(row["campaign"], 0),
        )
        for row in sums
    }
    return {key: found.get(key) or Progress(0, 0, 0, 0, locked.get(key, 0)) for key in keys}


def last_annotations(campaigns: Iterable[Campaign]) -> dict[int, datetime]:
    """When a campaign was last annotated, by its key."""
    rows = Assignment.objects.filter(
        item__campaign__in=[campaign.pk for campaign in campaigns], state=State.SUBMITTED
    )
    return dict(
        rows.values("item__campaign").annotate(at=Max("finished_at")).values_list("item__campaign", "at")
    )


def annotator_activity(campaign: Campaign) -> QuerySet[Annotator]:
    """Annotators with an assignment, with counts and active seconds; for researchers."""

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


def list_flagged(campaign: Campaign) -> QuerySet[Assignment]:
    rows = Assignment.objects.filter(item__campaign=campaign, state=State.FLAGGED)
    return rows.select_related("item__task", "annotator").order_by("-finished_at")


def _skipped(campaign: Campaign) -> QuerySet[Assignment]:
    """Assignments that were skipped or flagged, of work items that still need an annotation."""
    return Assignment.objects.filter(
        item__campaign=campaign,
        item__purpose=Item.Purpose.WORK,
        item__claimed_count__lt=F("item__overlap"),
        state__in=[State.SKIPPED, State.FLAGGED],
        is_adjudication=False,
    )


def list_skipped(campaign: Campaign) -> QuerySet[Assignment]:
    """Who skipped or flagged items that still need an annotation, and why; by item."""
    rows = _skipped(campaign).select_related("item__task", "annotator")
    return rows.order_by("item_id", "-finished_at")


def count_skipped_items(campaign: Campaign) -> int:
    return _skipped(campaign).values("item").distinct().count()


def current_pause(campaign: Campaign, annotator: Annotator) -> Participation | None:
    """The annotator's pause in the campaign, if they are paused."""
    rows = Participation.objects.filter(campaign=campaign, annotator=annotator, paused_at__isnull=False)
    return rows.first()


def annotated_assignments(annotator: Annotator, campaign: Campaign) -> QuerySet[Assignment]:
    """Assignments submitted as work. Gold items count too: annotators cannot distinguish them."""
    rows = Assignment.objects.filter(annotator=annotator, item__campaign=campaign, state=State.SUBMITTED)
    return rows.filter(is_adjudication=False).exclude(item__purpose=Item.Purpose.PRACTICE)


def list_history(
    annotator: Annotator, campaign: Campaign | None = None, *, adjudications: bool = False
) -> QuerySet[Assignment]:
    """Finished assignments, or adjudications, newest first."""
    rows = Assignment.objects.filter(
        annotator=annotator, finished_at__isnull=False, is_adjudication=adjudications
    )
    if campaign is not None:
        rows = rows.filter(item__campaign=campaign)
    return rows.select_related("item__task", "item__campaign").order_by("-finished_at", "-pk")


def own_assignments(annotator: Annotator, campaign: Campaign) -> dict[str, QuerySet[Assignment]]:
    """An annotator's assignments in a campaign: drafts, submitted and skipped ones, newest first."""
    rows = Assignment.objects.filter(annotator=annotator, item__campaign=campaign, is_adjudication=False)
    rows = rows.select_related("item__task", "item__campaign")
    return {
        "drafts": rows.exclude(draft={}).order_by("-draft_saved_at", "-pk"),
        "submitted": rows.filter(finished_at__isnull=False, annotations__isnull=False)
        .distinct()
        .order_by("-finished_at", "-pk"),
        "skipped": rows.filter(state__in=[State.SKIPPED, State.FLAGGED]).order_by("-finished_at", "-pk"),
    }


def item_trajectory_ids(items: Sequence[int]) -> dict[int, list[int]]:
    """Ids of the trajectories of each item, by position."""
    found: dict[int, list[int]] = {pk: [] for pk in items}
    places = ItemTrajectory.objects.filter(item__in=items).order_by("item", "position")
    for item, trajectory in places.values_list("item_id", "trajectory_id").iterator():
        found[item].append(trajectory)
    return found


def summarize_annotations(item: Item, shown: PresentedItem) -> list[tuple[Annotation, list[tuple[str, str]]]]:
    """Each annotator's newest counted annotation on an item, adjudications first, and what it says by `in_words`."""
    rows = Annotation.objects.filter(assignment__item=item, is_surplus=False)
    rows = (
        rows.order_by("-assignment__is_adjudication", "assignment", "-revision")
        .distinct("assignment__is_adjudication", "assignment")
        .select_related("assignment__annotator")
    )
    return [(annotation, summarize_annotation(annotation, shown)) for annotation in rows]


def summarize_annotation(annotation: Annotation, shown: PresentedItem) -> list[tuple[str, str]]:
    """(label of the feedback type, summary) of an annotation."""
    found = (
        (kind.label, kind.summary(kind.load_records(annotation), shown)) for kind in FEEDBACK_TYPES.values()
    )
    return [(label, words) for label, words in found if words]


def get_item(project: Project, pk: int) -> Item:
    rows = Item.objects.select_related("task", "campaign__project")
    item = rows.filter(campaign__project=project, pk=pk).first()
    if item is None:
        raise NotFound(f"There is no item {pk} in this project.")
    return item


def adjudicated_items(items: Collection[int]) -> set[int]:
    """Which of the items are adjudicated."""
    rows = Assignment.objects.filter(item__in=items, is_adjudication=True, state=State.SUBMITTED)
    return set(rows.values_list("item_id", flat=True))


def campaign_adjudicated_items(campaign: Campaign) -> set[int]:
    rows = Assignment.objects.filter(item__campaign=campaign, is_adjudication=True, state=State.SUBMITTED)
    return set(rows.values_list("item_id", flat=True))


def count_by_purpose(campaign: Campaign) -> dict[str, int]:
    """Number of gold items, practice items and examples, by purpose."""
    rows = Item.objects.filter(campaign=campaign).exclude(purpose=Item.Purpose.WORK)
    return dict(rows.values_list("purpose").annotate(n=Count("pk")))


def list_examples(campaign: Campaign) -> QuerySet[Item]:
    """Items shown with the guidelines, oldest first."""
    rows = Item.objects.filter(campaign=campaign, purpose=Item.Purpose.EXAMPLE)
    return rows.select_related("task").order_by("pk")


def list_paused(campaign: Campaign) -> QuerySet[Participation]:
    rows = Participation.objects.filter(campaign=campaign, paused_at__isnull=False)
    return rows.select_related("annotator").order_by("paused_at")


def annotated_items(campaign: Campaign, *, by: str = "", purpose: str = "") -> QuerySet[Item]:
    """Items with an annotation (of one annotator, if given), newest first; or all items of a purpose."""
    if purpose:
        return Item.objects.filter(campaign=campaign, purpose=purpose).select_related("task").order_by("-pk")
    assignments = Assignment.objects.filter(item=OuterRef("pk"), state=State.SUBMITTED, is_adjudication=False)
    if by:
        assignments = assignments.filter(annotator__name=by)
    rows = Item.objects.filter(Exists(assignments), campaign=campaign).select_related("task")
    return rows.order_by("-pk")


def last_annotation(assignment: Assignment) -> Annotation | None:
    return assignment.annotations.order_by("-revision").first()


def initial_form_fields(assignment: Assignment, shown: PresentedItem) -> dict[str, str]:
    """Form fields to start with: the draft, or the last annotation."""
    if assignment.draft:
        return dict(assignment.draft)
    if assignment.finished_at is None:
        return {}  # it was never submitted
    last = last_annotation(assignment)
    return annotation_form_fields(last, assignment.item.campaign, shown) if last else {}


def annotation_form_fields(
    annotation: Annotation, campaign: Campaign, shown: PresentedItem
) -> dict[str, str]:
    """The form fields of an annotation."""
    out: dict[str, str] = {}
    for name in campaign.feedback_types:
        out |= FEEDBACK_TYPES[name].form_values(FEEDBACK_TYPES[name].load_records(annotation), shown)
    return out
