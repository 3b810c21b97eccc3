"""What changes how a campaign chooses, and when it chooses."""

from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError, transaction

from apps.accounts.models import User
from apps.accounts.services import record_audit
from apps.active_learning.models import ItemSelection, SelectionPlan, SelectionReason, Strategy
from apps.active_learning.selectors import is_due, trajectories_with_features
from apps.annotation.models import Campaign, Item
from apps.annotation.services import require_unclosed, set_acquisition_scores, update_campaign
from apps.core.errors import DomainError
from apps.core.jobs import job_queue
from apps.core.storage.artifacts import delete_tree
from apps.rewards.models import Endpoint
from apps.trajectories.models import Trajectory

ADVANCE = "apps.active_learning.tasks.advance_selections"


@transaction.atomic
def save_plan(
    *,
    campaign: Campaign,
    strategy: str = Strategy.MIX,
    endpoint: Endpoint | None = None,
    annotations_between: int = 10,
    target_accuracy: float | None = None,
    by: User | None = None,
) -> SelectionPlan:
    """Have the campaign hand out the most informative items first, and start ranking them."""
    if strategy not in Strategy.values:
        raise DomainError(
            f"There is no strategy {strategy!r}; choose one of {', '.join(Strategy.values)}.",
            pointer="/strategy",
        )
    if endpoint is not None and endpoint.project_id != campaign.project_id:
        raise DomainError("The endpoint belongs to another project.", pointer="/endpoint", status=404)
    if not 1 <= annotations_between <= 10_000:
        raise DomainError(
            "Enter 1 to 10,000 annotations to rank again after.", pointer="/annotations_between"
        )
    if target_accuracy is not None and not 0.5 < target_accuracy < 1:
        raise DomainError(
            "The target accuracy must be above 50 % and below 100 %.", pointer="/target_accuracy"
        )
    plan, _ = SelectionPlan.objects.update_or_create(
        campaign=campaign,
        defaults={
            "strategy": strategy,
            "endpoint": endpoint,
            "annotations_between": annotations_between,
            "target_accuracy": target_accuracy,
        },
    )
    update_campaign(campaign=campaign, ordering=Campaign.Ordering.ACTIVE)
    data = {
        "strategy": strategy,
        "endpoint": endpoint.name if endpoint else None,
        "annotations_between": annotations_between,
    }
    record_audit(
        project=campaign.project, actor=by, verb="active_learning.set", target=campaign.name, data=data
    )
    select_next(plan=plan)
    return plan


@transaction.atomic
def select_next(*, plan: SelectionPlan) -> ItemSelection | None:
    """Queue a ranking; None where one is queued or running."""
    require_unclosed(plan.campaign, "rank its items")
    try:
        with transaction.atomic():
            selection = ItemSelection.objects.create(plan=plan)
    except IntegrityError:
        return None
    job_queue.nudge_on_commit(ADVANCE)
    return selection


def select_due_plans() -> int:
    """Choose again for every open campaign of the order `active` where enough has come since; how many."""
    campaigns = Campaign.objects.filter(
        state=Campaign.State.OPEN, ordering=Campaign.Ordering.ACTIVE, project__archived_at=None
    )
    started = 0
    for campaign in campaigns.select_related("selection_plan__endpoint"):
        plan = (
            getattr(campaign, "selection_plan", None)
            or SelectionPlan.objects.get_or_create(campaign=campaign)[0]
        )
        if is_due(plan):
            started += select_next(plan=plan) is not None
    return started


def store_selection(
    *,
    selection: ItemSelection,
    chosen: Sequence[dict[str, Any]],
    result: dict[str, Any],
    facts: dict[str, str],
) -> None:
    """The end of a choosing that went well: the order of the items, and why. Raises ClaimLost."""
    plan = selection.plan
    with job_queue.fenced(selection):
        ranked = {suggestion["id"]: suggestion for suggestion in chosen}
        there = set(Item.objects.filter(campaign=plan.campaign, pk__in=ranked).values_list("pk", flat=True))
        Item.objects.filter(campaign=plan.campaign, acquisition_score__isnull=False).exclude(
            pk__in=there
        ).update(acquisition_score=None)
        set_acquisition_scores(campaign=plan.campaign, scores={pk: ranked[pk]["score"] for pk in there})
        reasons = [
            SelectionReason(
                item_id=pk,
                selection=selection,
                strategy=plan.strategy,
                rank=ranked[pk]["rank"],
                measures=ranked[pk]["measures"],
            )
            for pk in sorted(there)
        ]
        SelectionReason.objects.bulk_create(
            reasons,
            update_conflicts=True,
            unique_fields=["item"],
            update_fields=["selection", "strategy", "rank", "measures"],
        )
        job_queue.finish(selection, job_queue.JobState.SUCCEEDED, result=result, progress={}, **facts)
    _forget_older(selection)


def delete_orphaned_features() -> int:
    """Drop features that hold a run which is not there any more; how many files. The next choosing encodes again."""
    dropped = 0
    for selection in ItemSelection.objects.exclude(artifact="").filter(state=job_queue.JobState.SUCCEEDED):
        name, known = selection.artifact, trajectories_with_features(selection)
        there = Trajectory.objects.filter(pk__in=known).count()
        if there < len(known):
            ItemSelection.objects.filter(pk=selection.pk).update(artifact="")
            delete_tree(name)
            dropped += 1
    return dropped


def _forget_older(selection: ItemSelection) -> None:
    """Only the newest features are of use."""
    older = ItemSelection.objects.filter(plan=selection.plan, pk__lt=selection.pk).exclude(artifact="")
    for suggestion in older:
        name = suggestion.artifact
        ItemSelection.objects.filter(pk=suggestion.pk).update(artifact="")
        delete_tree(name)
