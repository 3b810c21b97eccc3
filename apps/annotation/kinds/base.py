"""What a kind of feedback has to say for itself."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.annotation.models import Comment, Preference, Submission
from apps.trajectories.models import Trajectory
from workers.schema import Kind

Judgement = Preference | Comment
Fields = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Shown:
    """What the annotator sees: the item's trajectories by stored position, and the coin.

    Forms speak of sides as shown (0 left, 1 right), rows of stored positions.
    """

    trajectories: Sequence[Trajectory]
    swapped: bool

    def position(self, side: int) -> int:
        """The stored position of a shown side, and the other way round."""
        return len(self.trajectories) - 1 - side if self.swapped else side

    def on_side(self, side: int) -> Trajectory:
        return self.trajectories[self.position(side)]

    def side_of(self, trajectory_id: int) -> int:
        ids = [trajectory.pk for trajectory in self.trajectories]
        return self.position(ids.index(trajectory_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """parse: a posted form or draft to unsaved rows; fields: rows back to a form; check: is enough said.

    template: its part of the decision bar. fewest, most: trajectories of an item.
    """

    name: Kind
    label: str
    question: str
    model: type[Any]
    template: str
    fewest: int
    most: int
    parse: Callable[[Fields, Shown], list[Any]]
    fields: Callable[[Sequence[Any], Shown], dict[str, str]]
    check: Callable[..., None]

    def of(self, submission: Submission) -> list[Any]:
        return list(self.model.objects.filter(submission=submission).order_by("pk"))

    def save(self, submission: Submission, judgements: Sequence[Judgement]) -> None:
        rows = [row for row in judgements if isinstance(row, self.model)]
        for row in rows:
            row.submission = submission
        self.model.objects.bulk_create(rows)
