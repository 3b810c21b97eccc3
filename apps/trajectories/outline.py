"""A trajectory at a glance: every step as a mark, what is notable about it, and where words are in it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apps.trajectories.notes import Note
from apps.trajectories.patterns import failures
from workers.schema import Step
from workers.schema.patterns import SPACE, TextPattern, quote

MOST_FOUND = 200
WIDE, HIGH = 4, 40
_LONGEST = 500  # characters of the words that are looked for
_AROUND = 60  # characters before and after what is found
_MOST_MARKS = 2000  # of a minimap; of longer runs the steps without anything notable are thinned out


@dataclass(frozen=True, slots=True)
class Mark:
    """What stands for a step in the minimap. does: its tools, or the first words. reward: of the step, else None.
    noted: how many people's notes are on it."""

    index: int
    source: str
    does: str
    failed: bool
    reward: float | None
    noted: int = 0


@dataclass(frozen=True, slots=True)
class Bar:
    """A step's reward; of very long runs the largest of several. y, height: within the drawing."""

    index: int
    reward: float
    x: int
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Rewards:
    """The rewards of steps, drawn WIDE by HIGH for each. zero: where nothing is."""

    bars: list[Bar]
    width: int
    zero: float
    total: float
    lowest: Bar
    highest: Bar


@dataclass(frozen=True, slots=True)
class Found:
    """A place in a step; where: message, reasoning, arguments or observation."""

    index: int
    where: str
    before: str
    match: str
    after: str


def marks_of(steps: Sequence[Step], notes: Sequence[Note] = ()) -> list[Mark]:
    """In order; of more than 2,000 steps those that failed or were noted, and others at equal distances."""
    noted = Counter(
        index
        for note in notes
        if note.first is not None and note.last is not None
        for index in range(note.first, min(note.last + 1, len(steps)))
    )
    marks = [
        Mark(index, step.source, _does(step), failures(step) > 0, step.reward, noted[index])
        for index, step in enumerate(steps)
    ]
    every = -(-len(marks) // _MOST_MARKS)
    return [mark for mark in marks if mark.failed or mark.noted or mark.index % every == 0]


def rewards_of(steps: Sequence[Step]) -> Rewards | None:
    """Each step's reward, where any has one that is not 0."""
    given = [(index, step.reward) for index, step in enumerate(steps) if step.reward is not None]
    if not any(reward for _, reward in given):
        return None
    every = -(-len(given) // _MOST_MARKS)
    shown = [
        max(given[start : start + every], key=lambda one: abs(one[1]))
        for start in range(0, len(given), every)
    ]
    low, high = min(0.0, *(one for _, one in shown)), max(0.0, *(one for _, one in shown))
    unit = HIGH / (high - low)
    bars = [
        Bar(
            index,
            reward,
            WIDE * place,
            round((high - max(reward, 0.0)) * unit, 2),
            round(abs(reward) * unit, 2),
        )
        for place, (index, reward) in enumerate(shown)
    ]
    return Rewards(
        bars=bars,
        width=WIDE * len(bars),
        zero=round(high * unit, 2),
        total=sum(reward for _, reward in given),
        lowest=min(bars, key=lambda bar: bar.reward),
        highest=max(bars, key=lambda bar: bar.reward),
    )


def find(steps: Sequence[Step], words: str) -> list[Found]:
    """Where `words` stand, whatever their case and the spaces between them; the first 200 places."""
    pattern = TextPattern("(?i)" + f"[{SPACE}]+".join(quote(word) for word in words[:_LONGEST].split()))
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
