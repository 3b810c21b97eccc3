"""What every renderer produces, for all backbones."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, Protocol

from workers.schema import Features, Text, TokenIds, Trajectory
from workers.schema.conditions import Condition
from workers.schema.records import Source

Content = Trajectory | Text | TokenIds | Features


class Session(NamedTuple):
    """The owner and name of a growing trajectory: a cache hint that never changes a result."""

    space: str
    name: str


class Rendered(Protocol):
    """A score input rendered for a backbone.

    reads: by agent_step, the position its value is read at; None if the step was dropped to fit the length.
    key: equal for inputs that are identical to the model.
    """

    @property
    def tokens(self) -> int: ...
    @property
    def truncated(self) -> bool: ...
    @property
    def reads(self) -> tuple[int | None, ...]: ...
    @property
    def key(self) -> bytes: ...


class UnsharedInput:
    """Rendered inputs without a shared-prefix optimisation."""

    family = b""

    def shared(self, other: Any) -> int:
        return 0


class Renderer(Protocol):
    """From an item to what a backbone reads. Safe to use from any thread."""

    @property
    def rewrites(self) -> bool:
        """Whether what a step renders to may change when the next one comes."""

    @property
    def named_sources(self) -> Collection[Source]:
        """The sources of steps whose speaker it reads; none of models from before speakers were read."""

    @property
    def conditioned(self) -> Sequence[Condition]:
        """The conditions that it reads of a trajectory."""

    def render(self, content: Content) -> Any:
        """A Rendered. Raises RewardError for what this backbone cannot read."""

    def count(self, text: str) -> int:
        """The tokens of a text, nothing added."""

    def model_input(self, rendered: Any) -> list[Any]:
        """All of it that the model sees, as JSON values."""

    def settings(self) -> list[Any]:
        """Everything else that decides what an item renders to, as JSON values."""
