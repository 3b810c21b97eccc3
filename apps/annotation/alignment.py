"""Trajectories side by side: their equal beginning, then equal and similar steps beside each other."""

from collections.abc import Iterator, Sequence
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
    """Steps shown beside each other, by `step` index; None where a run has nothing to put there."""

    cells: tuple[int | None, ...]
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


def align(*runs: Sequence[Step]) -> Alignment:
    """One run stands alone; two beside each other, step by similar step; more in the order of their steps."""
    contents = [[_content(step) for step in run] for run in runs]
    prefix = _shared(contents) if len(runs) > 1 else 0
    if len(runs) == 2:
        return Alignment(prefix, tuple(_pair(runs[0], runs[1], contents[0], contents[1], prefix)))
    rest = [range(prefix, len(run)) for run in runs]
    return Alignment(prefix, tuple(Row(cells, True) for cells in zip_longest(*rest)))


def _shared(contents: list[list[Any]]) -> int:
    """How many steps all begin with."""
    for at, steps in enumerate(zip(*contents, strict=False)):
        if any(step != steps[0] for step in steps):
            return at
    return min(map(len, contents))


def _pair(
    left: Sequence[Step], right: Sequence[Step], ours: list[Any], theirs: list[Any], prefix: int
) -> Iterator[Row]:
    for same, lefts, rights in _blocks(ours, theirs, prefix, prefix):
        if same:
            yield from (Row((a, b), False) for a, b in zip(lefts, rights, strict=True))
        else:
            yield from _similar(left, right, lefts, rights)


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
        rows += [Row((one, other), True) for one, other in pairs]
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
