"""What a reader gives the importer: one judgement on trajectories that are stored, or come along."""

from dataclasses import dataclass, field
from typing import Any, Literal

from workers.errors import InvalidRecord
from workers.schema import Anchor, Choice, Kind, Origin, Task, Trajectory, TrajectoryId


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceValue:
    choice: Choice
    strength: Literal[1, 2, 3] = 1
    criterion: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentValue:
    text: str
    anchor: Anchor | None = None
    sign: Literal[1, -1] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeValue:
    success: bool
    reward: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """task: None where the trajectories are named by id and have theirs. item: names the comparison."""

    kind: Kind
    places: tuple[Trajectory | TrajectoryId, ...]
    value: PreferenceValue | CommentValue | OutcomeValue
    task: Task | None = None
    annotator: str = ""
    origin: Origin = "imported"
    item: str | None = None
    campaign: str | None = None

    def __post_init__(self) -> None:
        first, rest = self.places[0], self.places[1:]
        if isinstance(first, Trajectory) and any(
            isinstance(other, Trajectory) and other.content_hash == first.content_hash for other in rest
        ):
            raise InvalidRecord("a and b are the same trajectory; there is nothing to compare.", pointer="/b")
        if isinstance(first, TrajectoryId) and first in rest:
            raise InvalidRecord("a and b are the same trajectory; there is nothing to compare.", pointer="/b")


@dataclass
class FeedbackResult:
    """How many judgements were new, how many were there already, and what was refused."""

    created: int = 0
    duplicates: int = 0
    rejected: list[dict[str, Any]] = field(default_factory=list)  # {"line", "pointer", "message"}
