"""Trajectories that annotators and reviewers may see."""

from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from apps.accounts.models import Membership, Role
from apps.annotation.models import Assignment, Item, ItemTrajectory


def shown_trajectories(membership: Membership) -> QuerySet[Any, int]:
    """For annotators those of their items and of examples; for reviewers those of all items. Latest items first."""
    places = ItemTrajectory.objects.filter(item__campaign__project=membership.project)
    if not Role(membership.role).includes(Role.REVIEWER):
        theirs = Assignment.objects.filter(item=OuterRef("item"), annotator__user=membership.user)
        places = places.filter(Exists(theirs) | Exists(_examples()))
    return places.order_by("-item", "position").values_list("trajectory_id", flat=True)


def _examples() -> QuerySet[Item]:
    return Item.objects.filter(pk=OuterRef("item"), purpose=Item.Purpose.EXAMPLE)
