"""Two trajectories side by side: their equal beginning, then equal and similar steps beside each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

from workers.schema import Part, Step

MOST_MATCHED = (
    4_000_000  # products of lengths up to which similar steps are looked for; beyond it steps go in order
)


@dataclass(frozen=True, slots=True)
class Row:
    """Steps shown beside each other, by `step` index; None where one side has nothing to put there."""

    left: int | None
    right: int | None
    differs: bool


@dataclass(frozen=True, slots=True)
class Alignment:
    """prefix: how many steps both begin with. rows: everything after it."""

    prefix: int
    rows: tuple[Row, ...]

    @property
    def differences(self) -> list[int]:
        """Places in `rows` that differ."""
        return [place for place, row in enumerate(self.rows) if row.differs]

    @property
    def first_difference(self) -> int | None:
        return next(iter(self.differences), None)


def align(left: Sequence[Step], right: Sequence[Step]) -> Alignment:
    ours, theirs = [_content(step) for step in left], [_content(step) for step in right]
    prefix = next(
        (at for at, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b),
        min(len(ours), len(theirs)),
    )
    rows: list[Row] = []
    for same, lefts, rights in _blocks(ours, theirs, prefix, prefix):
        if same:
            rows += [Row(a, b, False) for a, b in zip(lefts, rights, strict=True)]
        else:
            rows += _similar(left, right, lefts, rights)
    return Alignment(prefix, tuple(rows))


def _blocks(ours: list[Any], theirs: list[Any], start: int, other: int) -> list[tuple[bool, range, range]]:
    """Alternating stretches of equal and of different entries, as index ranges."""
    if (len(ours) - start) * (len(theirs) - other) > MOST_MATCHED:
        return [(False, range(start, len(ours)), range(other, len(theirs)))]
    matcher = SequenceMatcher(None, ours[start:], theirs[other:], autojunk=False)
    return [
        (tag == "equal", range(start + i1, start + i2), range(other + j1, other + j2))
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
    ]


def _similar(left: Sequence[Step], right: Sequence[Step], lefts: range, rights: range) -> list[Row]:
    """Within a stretch that differs: steps of one shape beside each other, the rest in order."""
    rows: list[Row] = []
    ours, theirs = [_shape(left[i]) for i in lefts], [_shape(right[i]) for i in rights]
    for _, a, b in _blocks(ours, theirs, 0, 0):
        pairs = zip_longest([lefts[i] for i in a], [rights[i] for i in b])
        rows += [Row(one, other, True) for one, other in pairs]
    return rows


def _content(step: Step) -> Any:
    """What was said and done; ids and notes that differ between runs of the same are left out."""
    calls = tuple((call.name, call.arguments_text) for call in step.tool_calls)
    results = tuple(_parts(result.content) for result in step.observation)
    return step.source, _parts(step.message), step.reasoning, calls, results, step.features


def _parts(parts: Sequence[Part]) -> Any:
    return tuple((part.type, part.text, part.source) for part in parts)


def _shape(step: Step) -> Any:
    """Who acted and by which tools: what two steps share that do the same thing with other words."""
    return step.source, tuple(call.name for call in step.tool_calls), bool(step.text)
