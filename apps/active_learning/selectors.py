"""Reads of how campaigns choose."""

import json
from dataclasses import dataclass

from django.db.models import F, Q, QuerySet

from apps.active_learning.models import ItemSelection, SelectionPlan, SelectionReason
from apps.annotation.feedback.records import BY_JUDGES
from apps.annotation.models import Annotation, Campaign, Item
from apps.core.errors import NotFound
from apps.core.jobs.job_queue import JobState
from apps.core.number_parsing import whole_number
from apps.core.storage.artifacts import stage
from apps.rewards.models import RevisionModel
from apps.training.models import RewardModel
from apps.training.selectors import models_of

ENCODER = "encoder"
KEYS = "keys.json"  # of workers.active_learning.selection_folder


@dataclass(frozen=True, slots=True)
class SelectionBasis:
    """What is looked through: a model, or the embedded encoder where there is none yet."""

    model: RewardModel | None

    @property
    def key(self) -> str:
        return ENCODER if self.model is None else str(self.model.pk)

    def __str__(self) -> str:
        return "the embedded encoder, since there is no model yet" if self.model is None else str(self.model)


def selection_basis(plan: SelectionPlan) -> SelectionBasis:
    """The first model of the endpoint's active revision, else the newest of the project."""
    if plan.endpoint is not None and plan.endpoint.active_id is not None:
        uses = RevisionModel.objects.filter(revision=plan.endpoint.active_id, model__deleted_at=None)
        use = uses.select_related("model__project").order_by("pk").first()
        if use is not None:
            return SelectionBasis(use.model)
    return SelectionBasis(models_of(plan.campaign.project).first())


def newest_selection(plan: SelectionPlan) -> ItemSelection | None:
    """The last that went well."""
    return plan.selections.filter(state=JobState.SUCCEEDED).order_by("-pk").first()


def trajectories_with_features(selection: ItemSelection) -> set[int]:
    """The runs whose features a selection keeps; samples of traffic are none."""
    try:
        keys = json.loads((stage(selection.artifact) / KEYS).read_text())
    except NotFound:
        return set()
    return {number for key in keys if (number := whole_number(key)) is not None}


def is_due(plan: SelectionPlan) -> bool:
    """Whether enough has changed since the last choosing began: its items, its judgements, or the model."""
    pending = Q(state__in=[JobState.QUEUED, JobState.RUNNING])
    if plan.selections.filter(pending).exists():
        return False
    last = plan.selections.order_by("-pk").first()
    if last is None:
        return open_items(plan.campaign).exists()
    since = last.started_at or last.created_at
    if last.state != JobState.SUCCEEDED:  # it will not go better before something changes
        return count_annotations_since(plan, last) >= plan.annotations_between
    if last.basis != selection_basis(plan).key:
        return True
    return (
        count_annotations_since(plan, last) >= plan.annotations_between
        or plan.campaign.items.filter(created_at__gt=since).exists()
    )


def count_annotations_since(plan: SelectionPlan, selection: ItemSelection) -> int:
    since = selection.started_at or selection.created_at
    rows = Annotation.objects.filter(assignment__item__campaign=plan.campaign, created_at__gt=since)
    rows = rows.exclude(BY_JUDGES)
    return rows.values("assignment").distinct().count()


def open_items(campaign: Campaign) -> QuerySet[Item]:
    """What still wants a judgement."""
    return Item.objects.filter(campaign=campaign, purpose=Item.Purpose.WORK, claimed_count__lt=F("overlap"))


def next_items(plan: SelectionPlan, count: int) -> QuerySet[SelectionReason]:
    """What is asked about next, the first first."""
    rows = SelectionReason.objects.filter(item__campaign=plan.campaign, item__acquisition_score__isnull=False)
    rows = rows.filter(item__claimed_count__lt=F("item__overlap")).select_related("item__task", "selection")
    return rows.order_by("-item__acquisition_score", "rank")[:count]
