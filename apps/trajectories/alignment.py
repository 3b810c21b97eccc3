"""Alignment of trajectories: their common first steps, then equal and similar steps next to each other.

Two trajectories are aligned globally (Needleman and Wunsch 1970, J. Mol. Biol. 48:443) by the similarity of their
steps: equal steps score highest, then steps with the same tools, similar words and similar observations; a step
without a similar one stands alone. Words that are rare in both trajectories weigh more.
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

# Product of lengths up to which similarities are computed; longer trajectories are split at equal steps.
MAX_COMPARED_PAIRS = 9_000_000
_MAX_TEXT_PART = 2_000  # characters read of one text, from its start and from its end
_WORD = re.compile(r"\w+")
_ACTION_WEIGHT, _OBSERVATION_WEIGHT, _TOOL_WEIGHT = (
    0.5,
    0.3,
    0.1,
)  # weights of similarity: words of the action, of the observation, equal tools
_MIN_SIMILARITY = 0.2  # minimum similarity of two versions of a step
_MIN_ANSWER_SIMILARITY = 0.4  # minimum similarity of final answers
_NEIGHBOUR_WEIGHT = 0.05  # weight of the neighbours' similarity: decides between several equal steps

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class AlignedRow:
    """Steps in one row, by `step` index; None where a trajectory has no step.

    differs: the steps are not equal. changed: they are versions of one step; otherwise they only share the row.
    """

    cells: tuple[int | None, ...]
    differs: bool
    changed: bool = False


@dataclass(frozen=True, slots=True)
class Alignment:
    """prefix: the number of common first steps, prefix_agent_steps: the agent's among them. rows: all after them."""

    prefix: int
    rows: tuple[AlignedRow, ...]
    prefix_agent_steps: int = 0

    @property
    def differences(self) -> list[int]:
        """Indices of `rows` that differ."""
        return [place for place, row in enumerate(self.rows) if row.differs]

    @property
    def first_difference(self) -> int | None:
        return next(iter(self.differences), None)


def align_trajectories(*trajectories: Sequence[Step]) -> Alignment:
    """Two trajectories are aligned by similar steps; one, or more than two, in the order of their steps."""
    contents = [[step_fingerprint(step) for step in trajectory] for trajectory in trajectories]
    prefix = _common_prefix_length(contents) if len(trajectories) > 1 else 0
    of_agent = sum(step.source == "agent" for step in trajectories[0][:prefix]) if trajectories else 0
    if len(trajectories) == 2:
        rows = tuple(_align_pair(trajectories[0], trajectories[1], contents[0], contents[1], prefix))
        return Alignment(prefix, rows, of_agent)
    rest = [range(prefix, len(trajectory)) for trajectory in trajectories]
    return Alignment(prefix, tuple(AlignedRow(cells, True) for cells in zip_longest(*rest)), of_agent)


def step_fingerprint(step: Step) -> Any:
    """The content of a step, without ids and notes that differ between equal steps."""
    calls = tuple((call.name, call.arguments_text) for call in step.tool_calls)
    results = tuple(_parts(result.content) for result in step.observation)
    said = (step.source, step.speaker, _parts(step.message), step.reasoning)
    return *said, calls, results, step.features


def _parts(parts: Sequence[Part]) -> Any:
    return tuple((part.type, part.text, part.source) for part in parts)


def _common_prefix_length(contents: list[list[Any]]) -> int:
    """The number of common first steps."""
    for at, steps in enumerate(zip(*contents, strict=False)):
        if any(step != steps[0] for step in steps):
            return at
    return min(map(len, contents))


def _align_pair(
    left: Sequence[Step], right: Sequence[Step], ours: list[Any], theirs: list[Any], prefix: int
) -> Iterator[AlignedRow]:
    """Rows from `prefix` on. Equal steps at the end are matched before similarities are computed."""
    end = _common_prefix_length([ours[prefix:][::-1], theirs[prefix:][::-1]])
    lefts, rights = range(prefix, len(left) - end), range(prefix, len(right) - end)
    for a, b in _split_at_unique_steps(ours, theirs, lefts, rights):
        yield from _align_range(left, right, ours, theirs, a, b)
    yield from (
        AlignedRow((len(left) - back, len(right) - back), differs=False) for back in range(end, 0, -1)
    )


def _split_at_unique_steps(
    ours: list[Any], theirs: list[Any], lefts: range, rights: range
) -> Iterator[tuple[range, range]]:
    """Ranges to align: everything, or, where that is too much, between steps that occur once in both (patience)."""
    if len(lefts) * len(rights) <= MAX_COMPARED_PAIRS:
        yield lefts, rights
        return
    once = {content for content, count in Counter(theirs[i] for i in rights).items() if count == 1}
    places = {theirs[i]: i for i in rights if theirs[i] in once}
    count = Counter(ours[i] for i in lefts)
    pairs = [(i, places[ours[i]]) for i in lefts if count[ours[i]] == 1 and ours[i] in places]
    a, b = lefts.start, rights.start
    for i, j in _longest_increasing_pairs(pairs):
        yield range(a, i), range(b, j)
        a, b = i, j
    yield range(a, lefts.stop), range(b, rights.stop)


def _longest_increasing_pairs(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence of pairs, sorted by their first, that is sorted by their second too."""
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


def _align_range(
    left: Sequence[Step],
    right: Sequence[Step],
    ours: list[Any],
    theirs: list[Any],
    lefts: range,
    rights: range,
) -> Iterator[AlignedRow]:
    if len(lefts) * len(rights) > MAX_COMPARED_PAIRS or not lefts or not rights:
        yield from (AlignedRow(cells, differs=True) for cells in zip_longest(lefts, rights))
        return
    similarity_matrix = _similarity_matrix(left, right, ours, theirs, lefts, rights)
    i, j = 0, 0
    for a, b in [*_best_pairs(similarity_matrix), (len(lefts), len(rights))]:
        alone = zip_longest(lefts[i:a], rights[j:b])
        yield from (AlignedRow(cells, differs=True) for cells in alone)
        if a < len(lefts):
            differs = ours[lefts[a]] != theirs[rights[b]]
            yield AlignedRow((lefts[a], rights[b]), differs, changed=differs)
        i, j = a + 1, b + 1


def _similarity_matrix(
    left: Sequence[Step],
    right: Sequence[Step],
    ours: list[Any],
    theirs: list[Any],
    lefts: range,
    rights: range,
) -> Matrix:
    """The similarity of every pair of steps: [lefts, rights], 0 where they are not similar."""
    steps = [left[i] for i in lefts], [right[i] for i in rights]
    speakers = _equality_matrix(*([step.source for step in side] for side in steps))
    tools = _equality_matrix(
        *([tuple(call.name for call in step.tool_calls) for step in side] for side in steps)
    )
    same = _equality_matrix([ours[i] for i in lefts], [theirs[i] for i in rights])
    action_similarity = _cosine_similarities(*([_action_words(step) for step in side] for side in steps))
    observation_similarity = _cosine_similarities(
        *([_observation_words(step) for step in side] for side in steps)
    )
    similarity = (
        _TOOL_WEIGHT * tools
        + _ACTION_WEIGHT * action_similarity
        + _OBSERVATION_WEIGHT * observation_similarity
    )
    if _ends_with_answer(left, lefts) and _ends_with_answer(right, rights):
        similarity[-1, -1] = max(similarity[-1, -1], _MIN_ANSWER_SIMILARITY)
    similarity = np.where(same, np.float32(1), similarity) * speakers
    neighbour_similarity = np.zeros_like(similarity)
    neighbour_similarity[1:, 1:] += similarity[:-1, :-1]
    neighbour_similarity[:-1, :-1] += similarity[1:, 1:]
    return np.where(
        similarity > _MIN_SIMILARITY,
        similarity - _MIN_SIMILARITY + _NEIGHBOUR_WEIGHT * neighbour_similarity,
        0,
    ).astype(np.float32)


def _ends_with_answer(run: Sequence[Step], places: range) -> bool:
    """Whether the last of these steps is the final answer of the trajectory, which readers always compare."""
    last = run[places[-1]]
    return places.stop == len(run) and last.source == "agent" and not last.tool_calls


def _equality_matrix(ours: Sequence[Any], theirs: Sequence[Any]) -> npt.NDArray[np.bool_]:
    numbers: dict[Any, int] = {}
    a, b = ([numbers.setdefault(content, len(numbers)) for content in side] for side in (ours, theirs))
    return np.equal.outer(np.array(a), np.array(b))


def _cosine_similarities(ours: Sequence[Counter[str]], theirs: Sequence[Counter[str]]) -> Matrix:
    """Cosine similarity of the words of every pair of steps, weighted by rarity in both trajectories (tf-idf)."""
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


def _action_words(step: Step) -> Counter[str]:
    texts = [step.text, step.reasoning or "", *(call.arguments_text for call in step.tool_calls)]
    return _words([*texts, *(f"{number:.4g}" for number in step.features or ())])


def _observation_words(step: Step) -> Counter[str]:
    parts = (part for result in step.observation for part in result.content)
    return _words([part.text or part.source or "" for part in parts])


def _words(texts: Sequence[str]) -> Counter[str]:
    """Words of the starts and ends of texts."""
    short = (
        text if len(text) <= 2 * _MAX_TEXT_PART else f"{text[:_MAX_TEXT_PART]} {text[-_MAX_TEXT_PART:]}"
        for text in texts
    )
    return Counter(word for text in short for word in _WORD.findall(text.lower()))


def _best_pairs(similarity_matrix: Matrix) -> list[tuple[int, int]]:
    """The pairs, increasing in both indices, with the highest total. Gaps cost nothing, so a row of the table is a
    running maximum."""
    rows, columns = similarity_matrix.shape
    table = np.zeros((rows + 1, columns + 1), np.float32)
    for i in range(rows):
        np.maximum(table[i, 1:], table[i, :-1] + similarity_matrix[i], out=table[i + 1, 1:])
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
