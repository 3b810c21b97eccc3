"""What an import found."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognised:
    """What a checkpoint is, in words for people.

    type: one of `importing.TYPES`. because: what it was recognised by. reward: which number is the reward.
    template: how a conversation becomes tokens. reads: where in them the model is read. notes: what else to know.
    """

    type: str
    architecture: str
    because: str
    labels: tuple[str, ...] = ()
    reward: str
    template: str
    reads: str
    parameters: int
    bytes: int
    max_tokens: int
    licence: str = ""
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"labels": [*self.labels], "notes": [*self.notes]}
