"""What a reader gives the importer: one judgement on trajectories that are stored, or come along."""

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
    """value: of the kind's own type. task: None where the trajectories are named by id and have theirs.

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
        names = [one.content_hash if isinstance(one, Trajectory) else one for one in self.places]
        if len(self.places) > 1 and len(set(names)) < len(names):
            raise same_trajectory(len(self.places))


def same_trajectory(places: int) -> InvalidRecord:
    """What is said of a comparison that holds a trajectory twice."""
    if places == 2:
        return InvalidRecord("a and b are the same trajectory; there is nothing to compare.", pointer="/b")
    return InvalidRecord("the items hold a trajectory twice; each is ranked once.", pointer="/items")


@dataclass
class FeedbackResult:
    """How many judgements were new, how many were there already, and what was refused."""

    created: int = 0
    duplicates: int = 0
    rejected: list[dict[str, Any]] = field(default_factory=list)  # {"line", "pointer", "message"}
