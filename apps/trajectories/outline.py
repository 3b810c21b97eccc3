"""A trajectory at a glance: every step as a mark, what is notable about it, and where words are in it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apps.trajectories.patterns import failures
from workers.schema import Step

MOST_FOUND = 200
_AROUND = 60  # characters before and after what is found
_MOST_MARKS = 2000  # of a minimap; of longer runs the steps without anything notable are thinned out


@dataclass(frozen=True, slots=True)
class Mark:
    """What stands for a step in the minimap. does: its tools, or the first words. reward: of the step, else None."""

    index: int
    source: str
    does: str
    failed: bool
    reward: float | None


@dataclass(frozen=True, slots=True)
class Found:
    """A place in a step; where: message, reasoning, arguments or observation."""

    index: int
    where: str
    before: str
    match: str
    after: str


def marks_of(steps: Sequence[Step]) -> list[Mark]:
    """In order; of more than 2,000 steps those that failed, and others at equal distances."""
    marks = [
        Mark(index, step.source, _does(step), failures(step) > 0, step.reward)
        for index, step in enumerate(steps)
    ]
    every = -(-len(marks) // _MOST_MARKS)
    return [mark for mark in marks if mark.failed or mark.index % every == 0]


def find(steps: Sequence[Step], words: str) -> list[Found]:
    """Where `words` stand, whatever their case and the spaces between them; the first 200 places."""
    pattern = re.compile(r"\s+".join(re.escape(word) for word in words.split()), re.IGNORECASE)
    found: list[Found] = []
    if not words.split():
        return found
    for index, step in enumerate(steps):
        for where, text in _texts(step):
            for match in pattern.finditer(text):
                start, end = match.span()
                around = text[max(0, start - _AROUND) : start], match[0], text[end : end + _AROUND]
                found.append(Found(index, where, *around))
                if len(found) == MOST_FOUND:
                    return found
    return found


def _does(step: Step) -> str:
    calls = ", ".join(call.name for call in step.tool_calls)
    return calls or " ".join(step.text[:200].split())[:60]


def _texts(step: Step) -> Iterator[tuple[str, str]]:
    yield from (("message", part.text) for part in step.message if part.text)
    if step.reasoning:
        yield "reasoning", step.reasoning
    yield from (("arguments", f"{call.name} {call.arguments_text}") for call in step.tool_calls)
    for result in step.observation:
        yield from (("observation", part.text) for part in result.content if part.text)
