"""Marking a trajectory as a demonstration on its page: an annotation in a campaign of such marks."""

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from apps.accounts.actors import Actor, require_person
from apps.accounts.models import User
from apps.annotation.demonstrations import CAMPAIGN
from apps.annotation.models import (
    Annotation,
    Assignment,
    Campaign,
    Demonstration,
    Item,
    ItemTrajectory,
)
from apps.annotation.services.annotators import annotator_for
from apps.annotation.services.items import recount
from apps.trajectories.models import Trajectory


@transaction.atomic
def mark_demonstration(*, trajectory: Trajectory, by: Actor) -> None:
    """Mark it in the name of the person; nothing changes where they have. Raises Forbidden where there is none."""
    assignment = _assignment(trajectory, require_person(by, "mark a demonstration"))
    counted = assignment.annotations.filter(is_surplus=False)
    if counted.filter(demonstrations__demonstration=True).exists():
        return
    last = assignment.annotations.aggregate(newest=Max("revision"))["newest"] or 0
    annotation = Annotation.objects.create(
        assignment=assignment, revision=last + 1, campaign_version=assignment.item.campaign.version
    )
    Demonstration.objects.create(annotation=annotation, trajectory=trajectory, demonstration=True)
    _set_state(assignment, Assignment.State.SUBMITTED)


@transaction.atomic
def unmark_demonstration(*, trajectory: Trajectory, by: Actor) -> None:
    """Take back the mark that the person made on its page or by the API. It is kept, and counts for nothing. Raises
    Forbidden."""
    assignment = _assignment(trajectory, require_person(by, "take back a mark"))
    assignment.annotations.filter(is_surplus=False).update(is_surplus=True, withdrawn_at=timezone.now())
    _set_state(assignment, Assignment.State.EXPIRED)


def _assignment(trajectory: Trajectory, by: User) -> Assignment:
    """The user's, of the item for the trajectory, which is locked."""
    project = trajectory.project
    campaign, _ = Campaign.objects.get_or_create(
        project=project,
        name=CAMPAIGN,
        defaults={"feedback_types": ["demonstration"], "state": Campaign.State.CLOSED, "swap_sides": False},
    )
    item, is_new = Item.objects.get_or_create(
        campaign=campaign,
        key=f"name:trajectory {trajectory.pk}",
        defaults={"task": trajectory.task, "overlap": 1},
    )
    if is_new:
        ItemTrajectory.objects.create(item=item, trajectory=trajectory, position=0)
    Item.objects.select_for_update(no_key=True).get(pk=item.pk)
    assignment, _ = Assignment.objects.select_related("item__campaign").get_or_create(
        item=item,
        annotator=annotator_for(project=project, user=by),
        is_adjudication=False,
        defaults={"state": Assignment.State.EXPIRED},
    )
    return assignment


def _set_state(assignment: Assignment, state: Assignment.State) -> None:
    is_made = state == Assignment.State.SUBMITTED
    assignment.state, assignment.finished_at = state, timezone.now() if is_made else None
    assignment.save(update_fields=["state", "finished_at"])
    recount({assignment.item_id})
