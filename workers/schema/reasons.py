"""Reasons: which words and events moved the reward of a trajectory, and by how much."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

MOST_REASONS = 10
# Of the copies of an item without a word, together: of longer items fewer words are tried.
MOST_CHARACTERS = 2**21
MOST_TOKENS = 2**15  # of those, what an encoder has to read: some 5 s on two cores


def _ignore(tokens: int) -> None:
    """Where nothing is charged."""


@dataclass(frozen=True, slots=True)
class Rescoring:
    """How an item is scored again without a word.

    most_characters, most_tokens: of all copies, the latter of those that an encoder has to read. cache: that of the
    served model, which has the chunks of the item. charge: called with the tokens of the copies about to be scored;
    what it raises ends the search.
    """

    most_characters: int = MOST_CHARACTERS
    most_tokens: int = MOST_TOKENS
    cache: Any = None
    charge: Callable[[int], None] = _ignore


@dataclass(frozen=True, slots=True)
class WordReason:
    """A word of the agent, in small letters. step: the agent step; None where it is in several. count: in all of them.

    by: the reward less the reward without the word, on the reward scale.
    """

    text: str
    step: int | None
    count: int
    by: float

    def to_json(self) -> dict[str, Any]:
        return {"kind": "word", "text": self.text, "step": self.step, "count": self.count, "by": self.by}


@dataclass(frozen=True, slots=True)
class EventReason:
    """Something that happened. steps: the agent steps, ascending; of many, those that count most.

    by: what it adds to the reward, on the reward scale.
    """

    name: str
    steps: tuple[int, ...]
    by: float

    def to_json(self) -> dict[str, Any]:
        return {"kind": "event", "name": self.name, "steps": list(self.steps), "by": self.by}


Reason = WordReason | EventReason


def weighted(reason: Reason, weight: float) -> Reason:
    """The reason for the reward of a component with this weight."""
    return replace(reason, by=reason.by * weight)
