"""What is recorded of a guard's decisions: the decision, and excerpts of what was before it and of the action.

Excerpts are redacted before they are cut, so that no half of a secret stays.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import msgspec

from apps.rewards.redaction import KINDS, Redaction
from workers.schema import Step, Trajectory

Decision = Literal["allow", "deny", "ask"]
CHARACTERS = 1000  # of an excerpt, by default
MOST_CHARACTERS = 20_000
CUT = " […] "


class GuardResult(msgspec.Struct, frozen=True, kw_only=True):
    """rule: the name of the check that decided, or `violation probability`; None where neither did. violations: of all
    checks by this action."""

    decision: Decision
    rule: str | None = None
    reason: str = ""
    violations: list[dict[str, Any]] = []


@dataclass(frozen=True, slots=True)
class LoggedDecision:
    """steps: the last ones before the action, and it. characters: of each excerpt; 0 for none. is_sampled: people
    review it."""

    result: GuardResult
    at: datetime
    reward: float
    is_sampled: bool
    redaction: Redaction
    steps: tuple[Step, ...] = ()
    characters: int = 0

    @property
    def size(self) -> int:
        """Characters that it keeps in memory."""
        return sum(map(_length, self.steps))

    @property
    def prefix(self) -> str:
        """The end of what was before the action."""
        texts = [self._text(step) for step in self.steps[:-1]]
        return _end("\n".join(texts), self.characters)

    @property
    def action(self) -> str:
        if not self.steps or not self.characters:
            return ""
        return _middle(self._text(self.steps[-1]), self.characters)

    @property
    def reason(self) -> str:
        return self._clean(self.result.reason)

    @property
    def violations(self) -> list[dict[str, Any]]:
        return [each | {"reason": self._clean(each["reason"])} for each in self.result.violations]

    def _text(self, step: Step) -> str:
        return self._clean("\n".join(_lines(step)))

    def _clean(self, text: str) -> str:
        found: str = self.redaction.apply(text)
        return found.replace("\x00", "\N{REPLACEMENT CHARACTER}")  # PostgreSQL stores none


def guard_redaction(patterns: Sequence[str] = ()) -> Redaction:
    """All kinds, and the patterns of the endpoint."""
    return Redaction(tuple(KINDS), tuple(patterns))


def last_steps(content: Trajectory, characters: int) -> tuple[Step, ...]:
    """The action, and whole steps before it until they have enough characters for the excerpt."""
    if not characters:
        return ()
    kept, room = [content.steps[-1]], characters
    for step in reversed(content.steps[:-1]):
        if room <= 0:
            break
        kept.append(step)
        room -= _length(step)
    return tuple(reversed(kept))


def _lines(step: Step) -> Iterator[str]:
    who = step.speaker or step.source
    if step.text:
        yield f"{who}: {step.text}"
    for call in step.tool_calls:
        yield f"{who} calls {call.name} {call.arguments_text}"
    for result in step.observation:
        yield "result: " + " ".join(part.text for part in result.content if part.text)


def _length(step: Step) -> int:
    return sum(map(len, _lines(step)))


def _end(text: str, characters: int) -> str:
    return text if len(text) <= characters else CUT.lstrip() + text[len(text) - characters :]


def _middle(text: str, characters: int) -> str:
    """An action's beginning names its tool, and its end is what long arguments hide."""
    if len(text) <= characters:
        return text
    half = characters // 2
    return f"{text[:half]}{CUT}{text[-half:]}"
