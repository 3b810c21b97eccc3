"""Parsed records of an import, and its result."""

from dataclasses import dataclass, field
from typing import Any

from workers.errors import InvalidRecord
from workers.schema import Kind, Origin, Task, Trajectory, TrajectoryId


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeValue:
    success: bool
    reward: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """One record. value: of the kind's own type. task: None if the trajectories are named by id and have their own.

    item: names the comparison. purpose, explanation: of an item that is new.
    """

    kind: Kind
    places: tuple[Trajectory | TrajectoryId, ...]
    value: Any
    task: Task | None = None
    annotator: str = ""
    origin: Origin = "imported"
    item: str | None = None
    campaign: str | None = None
    is_adjudication: bool = False
    purpose: str = "work"
    explanation: str = ""

    def __post_init__(self) -> None:
        names = [place.content_hash if isinstance(place, Trajectory) else place for place in self.places]
        if len(self.places) > 1 and len(set(names)) < len(names):
            raise same_trajectory(len(self.places))


def same_trajectory(places: int) -> InvalidRecord:
    """The error of a comparison that contains a trajectory twice."""
    if places == 2:
        return InvalidRecord("a and b are the same trajectory; compare different trajectories.", pointer="/b")
    return InvalidRecord("the items contain a trajectory twice; rank each trajectory once.", pointer="/items")


@dataclass
class FeedbackResult:
    """Numbers of created records and duplicates, and the rejected records."""

    created: int = 0
    duplicates: int = 0
    rejected: list[dict[str, Any]] = field(default_factory=list)  # {"line", "pointer", "message"}
