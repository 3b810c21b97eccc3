"""Trajectories side by side: their equal beginning, then equal and similar steps beside each other.

Two runs are aligned globally (Needleman and Wunsch 1970, J. Mol. Biol. 48:443) over the likeness of their steps: equal
steps are worth most, then steps that used the same tools with the same words and saw the same things; a step nothing is
like stands alone. The rarer a word in both runs, the more it says.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from workers.schema import Part, Step

# Products of lengths up to which likeness is looked at; beyond it equal steps cut the runs.
MOST_MATCHED = 9_000_000
_READ = 2_000  # characters of one text whose words are looked at, from its beginning and from its end
_WORDS = re.compile(r"\w+")
_SAID, _SEEN, _TOOLS = 0.5, 0.3, 0.1  # shares of likeness: words of the action, of what was seen, equal tools
_LEAST = 0.2  # likeness below which two steps are no versions of one another
_ANSWERS = 0.4  # likeness of final answers at least
_CONTEXT = 0.05  # of the likeness of the neighbours: which of several equal steps is meant

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Row:
    """Steps shown beside each other, by `step` index; None where a run has nothing to put there.

    differs: they are not equal. changed: they are versions of one step; else they only stand in the same place.
    """

    cells: tuple[int | None, ...]
    differs: bool
    changed: bool = False


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
    contents = [[fingerprint(step) for step in run] for run in runs]
    prefix = _shared(contents) if len(runs) > 1 else 0
    if len(runs) == 2:
        return Alignment(prefix, tuple(_pair(runs[0], runs[1], contents[0], contents[1], prefix)))
    rest = [range(prefix, len(run)) for run in runs]
    return Alignment(prefix, tuple(Row(cells, True) for cells in zip_longest(*rest)))


def fingerprint(step: Step) -> Any:
    """What was said and done; ids and notes that differ between runs of the same are left out."""
    calls = tuple((call.name, call.arguments_text) for call in step.tool_calls)
    results = tuple(_parts(result.content) for result in step.observation)
    return step.source, _parts(step.message), step.reasoning, calls, results, step.features


def _parts(parts: Sequence[Part]) -> Any:
    return tuple((part.type, part.text, part.source) for part in parts)


def _shared(contents: list[list[Any]]) -> int:
    """How many steps all begin with."""
    for at, steps in enumerate(zip(*contents, strict=False)):
        if any(step != steps[0] for step in steps):
            return at
    return min(map(len, contents))


def _pair(
    left: Sequence[Step], right: Sequence[Step], ours: list[Any], theirs: list[Any], prefix: int
) -> Iterator[Row]:
    """Rows from `prefix` on. Equal steps at the end are taken off before anything is weighed."""
    end = _shared([ours[prefix:][::-1], theirs[prefix:][::-1]])
    lefts, rights = range(prefix, len(left) - end), range(prefix, len(right) - end)
    for a, b in _anchored(ours, theirs, lefts, rights):
        yield from _rows(left, right, ours, theirs, a, b)
    yield from (Row((len(left) - back, len(right) - back), differs=False) for back in range(end, 0, -1))


def _anchored(
    ours: list[Any], theirs: list[Any], lefts: range, rights: range
) -> Iterator[tuple[range, range]]:
    """Stretches to weigh: all at once, or, where that is too much, between steps that occur once in both (patience)."""
    if len(lefts) * len(rights) <= MOST_MATCHED:
        yield lefts, rights
        return
    once = {one for one, count in Counter(theirs[i] for i in rights).items() if count == 1}
    places = {theirs[i]: i for i in rights if theirs[i] in once}
    count = Counter(ours[i] for i in lefts)
    pairs = [(i, places[ours[i]]) for i in lefts if count[ours[i]] == 1 and ours[i] in places]
    a, b = lefts.start, rights.start
    for i, j in _increasing(pairs):
        yield range(a, i), range(b, j)
        a, b = i, j
    yield range(a, lefts.stop), range(b, rights.stop)


def _increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of pairs, sorted by their first, that is sorted by their second too."""
    tails: list[int] = []
    ends: list[int] = []  # places in pairs
    before: list[int | None] = []
    for place, (_, second) in enumerate(pairs):
        at = bisect_left(tails, second)
        before.append(ends[at - 1] if at else None)
        if at == len(tails):
            tails.append(second)
            ends.append(place)
        tails[at], ends[at] = second, place
    found = []
    at_end = ends[-1] if ends else None
    while at_end is not None:
        found.append(pairs[at_end])
        at_end = before[at_end]
    return found[::-1]


def _rows(
    left: Sequence[Step],
    right: Sequence[Step],
    ours: list[Any],
    theirs: list[Any],
    lefts: range,
    rights: range,
) -> Iterator[Row]:
    if len(lefts) * len(rights) > MOST_MATCHED or not lefts or not rights:
        yield from (Row(cells, differs=True) for cells in zip_longest(lefts, rights))
        return
    worth = _likeness(left, right, ours, theirs, lefts, rights)
    i, j = 0, 0
    for a, b in [*_best(worth), (len(lefts), len(rights))]:
        alone = zip_longest(lefts[i:a], rights[j:b])
        yield from (Row(cells, differs=True) for cells in alone)
        if a < len(lefts):
            differs = ours[lefts[a]] != theirs[rights[b]]
            yield Row((lefts[a], rights[b]), differs, changed=differs)
        i, j = a + 1, b + 1


def _likeness(
    left: Sequence[Step],
    right: Sequence[Step],
    ours: list[Any],
    theirs: list[Any],
    lefts: range,
    rights: range,
) -> Matrix:
    """What it is worth to put steps beside each other: (lefts, rights), 0 where they are nothing alike."""
    steps = [left[i] for i in lefts], [right[i] for i in rights]
    speakers = _equal(*([step.source for step in side] for side in steps))
    tools = _equal(*([tuple(call.name for call in step.tool_calls) for step in side] for side in steps))
    same = _equal([ours[i] for i in lefts], [theirs[i] for i in rights])
    said = _cosines(*([_said(step) for step in side] for side in steps))
    seen = _cosines(*([_seen(step) for step in side] for side in steps))
    alike = _TOOLS * tools + _SAID * said + _SEEN * seen
    if _answers(left, lefts) and _answers(right, rights):
        alike[-1, -1] = max(alike[-1, -1], _ANSWERS)
    alike = np.where(same, np.float32(1), alike) * speakers
    near = np.zeros_like(alike)
    near[1:, 1:] += alike[:-1, :-1]
    near[:-1, :-1] += alike[1:, 1:]
    return np.where(alike > _LEAST, alike - _LEAST + _CONTEXT * near, 0).astype(np.float32)


def _answers(run: Sequence[Step], places: range) -> bool:
    """Whether the last of these steps is the run's final answer: what readers compare, whatever its words."""
    last = run[places[-1]]
    return places.stop == len(run) and last.source == "agent" and not last.tool_calls


def _equal(ours: Sequence[Any], theirs: Sequence[Any]) -> npt.NDArray[np.bool_]:
    numbers: dict[Any, int] = {}
    a, b = ([numbers.setdefault(one, len(numbers)) for one in side] for side in (ours, theirs))
    return np.equal.outer(np.array(a), np.array(b))


def _cosines(ours: Sequence[Counter[str]], theirs: Sequence[Counter[str]]) -> Matrix:
    """Of the words of every pair of steps, weighted by how rare they are in both runs (tf-idf)."""
    every = [*ours, *theirs]
    numbers: dict[str, int] = {}
    columns = [numbers.setdefault(word, len(numbers)) for words in every for word in words]
    counts = np.array([count for words in every for count in words.values()], np.float32)
    frequency = np.bincount(columns, minlength=len(numbers))
    rarity = np.log((1 + len(every)) / (1 + frequency)) + 1e-3
    starts = np.cumsum([0, *map(len, every)])
    table = csr_array(
        (np.log1p(counts) * rarity[columns], columns, starts),
        shape=(len(every), len(numbers)),
        dtype=np.float32,
    )
    lengths = np.maximum(np.sqrt(table.multiply(table).sum(axis=1)), 1e-9)
    products = (table[: len(ours)] @ table[len(ours) :].T).toarray()
    return products / np.outer(lengths[: len(ours)], lengths[len(ours) :])


def _said(step: Step) -> Counter[str]:
    texts = [step.text, step.reasoning or "", *(call.arguments_text for call in step.tool_calls)]
    return _words([*texts, *(f"{number:.4g}" for number in step.features or ())])


def _seen(step: Step) -> Counter[str]:
    parts = (part for result in step.observation for part in result.content)
    return _words([part.text or part.source or "" for part in parts])


def _words(texts: Sequence[str]) -> Counter[str]:
    """Words of the beginnings and ends of texts."""
    short = (text if len(text) <= 2 * _READ else f"{text[:_READ]} {text[-_READ:]}" for text in texts)
    return Counter(word for text in short for word in _WORDS.findall(text.lower()))


def _best(worth: Matrix) -> list[tuple[int, int]]:
    """The pairs, rising in both, that are worth most together. Standing alone costs nothing, so a row of the table is
    a running maximum."""
    rows, columns = worth.shape
    table = np.zeros((rows + 1, columns + 1), np.float32)
    for i in range(rows):
        np.maximum(table[i, 1:], table[i, :-1] + worth[i], out=table[i + 1, 1:])
        np.maximum.accumulate(table[i + 1], out=table[i + 1])
    pairs = []
    i, j = rows, columns
    while i and j:
        if table[i, j] == table[i - 1, j]:
            i -= 1
        elif table[i, j] == table[i, j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            pairs.append((i, j))
    return pairs[::-1]
