"""Items as annotators see them: the order of the sides, and names of the sides in forms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from apps.annotation.models import Assignment, Campaign, Item
from apps.core.errors import DomainError
from apps.rubrics.models import Criterion, RubricCriterion
from apps.trajectories.models import Trajectory
from workers.schema import Kind

SIDES: tuple[str, ...] = ("left", "right", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
LETTERS = "ABCDEFGH"
FormFields = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PresentedItem:
    """An item as presented to an annotator: trajectories by stored position, and the order of the sides.

    order: the stored position of each side, from left to right. Forms use sides (SIDES), rows use positions.
    criteria, options: of the campaign.
    """

    trajectories: Sequence[Trajectory]
    order: Sequence[int]
    criteria: Sequence[Criterion] = ()
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def sides(self) -> tuple[str, ...]:
        return SIDES[: len(self.trajectories)]

    def position(self, side: int) -> int:
        """The stored position of a side."""
        return self.order[side]

    def on_side(self, side: int) -> Trajectory:
        return self.trajectories[self.order[side]]

    def side_of(self, trajectory_id: int) -> int:
        ids = [trajectory.pk for trajectory in self.trajectories]
        return list(self.order).index(ids.index(trajectory_id))

    @property
    def scale_criteria(self) -> list[Criterion]:
        return [criterion for criterion in self.criteria if criterion.has_scale]

    @property
    def category_criteria(self) -> list[Criterion]:
        types = (Criterion.AnswerType.CATEGORY, Criterion.AnswerType.CATEGORIES)
        return [criterion for criterion in self.criteria if criterion.answer_type in types]

    @property
    def taxonomy(self) -> Criterion | None:
        """The criterion whose categories are tags on agent steps."""
        tagging = (each for each in self.criteria if each.answer_type == Criterion.AnswerType.STEP_TAGS)
        return next(tagging, None)

    def option(self, kind: Kind, name: str, default: str) -> str:
        """The campaign's option of a feedback type."""
        return self.options.get(kind, {}).get(name) or default


def present_item(assignment: Assignment) -> PresentedItem:
    places = assignment.item.places.select_related("trajectory").order_by("position")
    trajectories = [place.trajectory for place in places]
    campaign = assignment.item.campaign
    return PresentedItem(
        trajectories,
        presentation_order(assignment, len(trajectories)),
        rubric_criteria(campaign),
        campaign.options,
    )


def presentation_order(assignment: Assignment, count: int) -> list[int]:
    """The stored positions from left to right: two by `swapped`, more shuffled with the assignment's key as seed.

    Adjudications, practice items and examples are shown in stored order, like the annotations shown with them.
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


def rubric_criteria(campaign: Campaign) -> list[Criterion]:
    """Criteria of the campaign's rubric, in its order."""
    if campaign.rubric_id is None:
        return []
    entries = RubricCriterion.objects.filter(rubric=campaign.rubric_id).select_related("criterion")
    return [entry.criterion for entry in entries.order_by("position")]


def present_stored_order(item: Item) -> PresentedItem:
    """An item in stored order, to show the annotations of several people."""
    places = item.places.select_related("trajectory").order_by("position")
    trajectories = [place.trajectory for place in places]
    campaign = item.campaign
    return PresentedItem(trajectories, range(len(trajectories)), rubric_criteria(campaign), campaign.options)


def parse_choice(fields: FormFields, name: str, allowed: Sequence[str], what: str) -> str:
    """The value of a radio group, "" if nothing is chosen. Raises DomainError for an unknown value."""
    value = fields.get(name, "")
    if value and value not in allowed:
        raise DomainError(f"Unknown {what} {value!r}; allowed are {', '.join(allowed)}.", pointer=f"/{name}")
    return value
