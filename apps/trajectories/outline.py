"""Overview of a trajectory: marks of its steps for the minimap, rewards per step, and text search."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apps.trajectories.notes import Note
from apps.trajectories.patterns import count_failures
from workers.schema import Step
from workers.schema.patterns import SPACE, TextPattern, quote

MAX_MATCHES = 200
MAX_SPEAKER_STEPS = 100  # of each speaker that are listed
WIDE, HIGH = 4, 40
_MAX_QUERY_LENGTH = 500  # characters
_CONTEXT_LENGTH = 60  # characters before and after a match
_MAX_BARS = 400  # of a chart of rewards


@dataclass(frozen=True, slots=True)
class StepMark:
    """A step in the minimap. action: its tools, or its first words. reward: of the step, else None.
    note_count: how many notes are on it. speaker: who spoke, where the log names it. first, last: of the steps that it
    stands for, where these are several."""

    index: int
    source: str
    action: str
    failed: bool
    reward: float | None
    note_count: int = 0
    speaker: str | None = None
    first: int | None = None
    last: int | None = None


@dataclass(slots=True)
class SpeakerSteps:
    """The steps of one speaker. indices: of the first MAX_SPEAKER_STEPS. count: of all."""

    name: str
    indices: list[int]
    count: int = 0

    @property
    def more(self) -> int:
        return self.count - len(self.indices)


@dataclass(frozen=True, slots=True)
class RewardBar:
    """The reward of a step; in very long trajectories the largest of several. y, height: within the drawing."""

    index: int
    reward: float
    x: int
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class RewardChart:
    """The rewards of steps, drawn WIDE by HIGH for each. zero: y of the zero line."""

    bars: list[RewardBar]
    width: int
    zero: float
    total: float
    lowest: RewardBar
    highest: RewardBar


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A match in a step. where: message, reasoning, arguments or observation."""

    index: int
    where: str
    before: str
    text: str
    after: str


def step_marks(steps: Sequence[Step], notes: Sequence[Note] = ()) -> list[StepMark]:
    """One for each step, in order."""
    note_counts = Counter(
        index
        for note in notes
        if note.first is not None and note.last is not None
        for index in range(note.first, min(note.last + 1, len(steps)))
    )
    return [
        StepMark(
            index,
            step.source,
            _describe_action(step),
            count_failures(step) > 0,
            step.reward,
            note_counts[index],
            step.speaker,
        )
        for index, step in enumerate(steps)
    ]


def speaker_steps(steps: Sequence[Step]) -> list[SpeakerSteps]:
    """By speaker, in the order in which they first speak; none of a log that names no one."""
    found: dict[str, SpeakerSteps] = {}
    for index, step in enumerate(steps):
        if step.speaker is not None:
            speaker = found.setdefault(step.speaker, SpeakerSteps(step.speaker, []))
            speaker.count += 1
            if len(speaker.indices) < MAX_SPEAKER_STEPS:
                speaker.indices.append(index)
    return list(found.values())


def reward_chart(given: Sequence[tuple[int, float]]) -> RewardChart | None:
    """given: the reward of each step that has one, by index. None if none has one other than 0."""
    if not any(reward for _, reward in given):
        return None
    every = -(-len(given) // _MAX_BARS)
    shown = [
        max(given[start : start + every], key=lambda entry: abs(entry[1]))
        for start in range(0, len(given), every)
    ]
    low, high = min(0.0, *(reward for _, reward in shown)), max(0.0, *(reward for _, reward in shown))
    unit = HIGH / (high - low)
    bars = [
        RewardBar(
            index,
            reward,
            WIDE * place,
            round((high - max(reward, 0.0)) * unit, 2),
            round(abs(reward) * unit, 2),
        )
        for place, (index, reward) in enumerate(shown)
    ]
    return RewardChart(
        bars=bars,
        width=WIDE * len(bars),
        zero=round(high * unit, 2),
        total=sum(reward for _, reward in given),
        lowest=min(bars, key=lambda bar: bar.reward),
        highest=max(bars, key=lambda bar: bar.reward),
    )


def find_text(steps: Sequence[Step], words: str) -> list[TextMatch]:
    """Matches of `words`, ignoring case and the spaces between them; the first 200."""
    pattern = TextPattern(
        "(?i)" + f"[{SPACE}]+".join(quote(word) for word in words[:_MAX_QUERY_LENGTH].split())
    )
    matches: list[TextMatch] = []
    if not words.split():
        return matches
    for index, step in enumerate(steps):
        for where, text in _texts(step):
            for match in pattern.finditer(text):
                start, end = match.span()
                context = (
                    text[max(0, start - _CONTEXT_LENGTH) : start],
                    match[0],
                    text[end : end + _CONTEXT_LENGTH],
                )
                matches.append(TextMatch(index, where, *context))
                if len(matches) == MAX_MATCHES:
                    return matches
    return matches


def _describe_action(step: Step) -> str:
    calls = ", ".join(call.name for call in step.tool_calls)
    return calls or " ".join(step.text[:200].split())[:60]


def _texts(step: Step) -> Iterator[tuple[str, str]]:
    yield from (("message", part.text) for part in step.message if part.text)
    if step.reasoning:
        yield "reasoning", step.reasoning
    yield from (("arguments", f"{call.name} {call.arguments_text}") for call in step.tool_calls)
    for result in step.observation:
        yield from (("observation", part.text) for part in result.content if part.text)
