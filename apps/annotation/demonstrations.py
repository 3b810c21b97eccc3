"""Trajectories that are marked as demonstrations."""

from dataclasses import dataclass

from django.db.models import QuerySet

from apps.accounts.models import User
from apps.annotation.feedback.records import newest_revision
from apps.annotation.models import Demonstration
from apps.trajectories.models import Trajectory

CAMPAIGN = "Demonstrations"  # that marks on pages of trajectories are in


@dataclass(frozen=True, slots=True)
class DemonstrationMarks:
    """is_own: whether the member marked it on its page. others: names of all others who call it a demonstration."""

    is_own: bool
    others: list[str]


def current_demonstrations() -> QuerySet[Demonstration]:
    """Newest answers that call a trajectory a demonstration."""
    return Demonstration.objects.filter(
        demonstration=True,
        annotation__is_surplus=False,
        annotation__revision=newest_revision("annotation__assignment"),
    )


def demonstration_marks(trajectory: Trajectory, user: User | None) -> DemonstrationMarks:
    """user: None for a program, which marks nothing."""
    rows = current_demonstrations().filter(trajectory=trajectory)
    name, campaign = "annotation__assignment__annotator", "annotation__assignment__item__campaign__name"
    marks = rows.values_list(f"{name}__user", f"{name}__name", campaign)
    member = None if user is None else user.pk
    own = [
        user_id is not None and user_id == member and campaign == CAMPAIGN for user_id, _, campaign in marks
    ]
    others = {annotator for is_own, (_, annotator, _) in zip(own, marks, strict=True) if not is_own}
    return DemonstrationMarks(any(own), sorted(others))
