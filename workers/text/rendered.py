"""What every renderer makes of an item, whatever the backbone reads."""

from typing import Any, NamedTuple, Protocol

from workers.schema import Features, Text, TokenIds, Trajectory

Content = Trajectory | Text | TokenIds | Features


class Session(NamedTuple):
    """Whose trajectory grows, and which. A hint where to look for what was computed of it; never part of a result."""

    space: str
    name: str


class Rendered(Protocol):
    """An item made ready for a backbone.

    reads: by agent_step, the place its value is read at; None where the step was dropped because of the length.
    key: equal for items that the model cannot tell apart.
    """

    @property
    def tokens(self) -> int: ...
    @property
    def truncated(self) -> bool: ...
    @property
    def reads(self) -> tuple[int | None, ...]: ...
    @property
    def key(self) -> bytes: ...


class Apart:
    """Rendered items that gain nothing by standing beside those that begin alike."""

    family = b""

    def shared(self, other: Any) -> int:
        return 0


class Renderer(Protocol):
    """From an item to what a backbone reads. Safe to use from any thread."""

    @property
    def rewrites(self) -> bool:
        """Whether what a step renders to may change when the next one comes."""

    def render(self, content: Content) -> Any:
        """A Rendered. Raises RewardError for what this backbone cannot read."""

    def count(self, text: str) -> int:
        """The tokens of a text, nothing added."""

    def shown(self, rendered: Any) -> list[Any]:
        """All of it that the model sees, as JSON values."""

    def settings(self) -> list[Any]:
        """Everything else that decides what an item renders to, as JSON values."""
