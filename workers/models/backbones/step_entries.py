"""The features of agent steps as entries of a sparse matrix: hashed n-grams of what was written and seen at each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from workers.text import STRUCTURE, StepTexts
from workers.text.ngrams import COLUMNS, piece_columns_by_text, word_columns_by_text

Floats = NDArray[np.float64]
EntryValues = NDArray[np.float32]  # a weight times one is added up in float64
# The length of a channel's part of a step: the larger, the less the ridge penalty holds its weights back. Structure is
# multiplied by STRUCTURE_SCALE as it is: how much of it there is, is what it tells.
WORDS_LENGTH, PIECES_LENGTH, OBSERVATION_LENGTH, STRUCTURE_SCALE = 0.5, 0.5, 0.25, 0.7
FIRST_STRUCTURE = 3 * COLUMNS
FIRST_EMBEDDING = FIRST_STRUCTURE + len(STRUCTURE)
_LENGTHS = np.array([WORDS_LENGTH, PIECES_LENGTH, OBSERVATION_LENGTH])
_BLOCK_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class Entries:
    """A sparse matrix. lengths: [steps], how many of the columns and values each step has, one step after another."""

    columns: NDArray[np.int32]
    values: EntryValues
    lengths: NDArray[np.int64]

    @classmethod
    def join(cls, parts: "Sequence[Entries]") -> "Entries":
        return cls(
            np.concatenate([part.columns for part in parts]),
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.lengths for part in parts]),
        )

    def with_dense(self, dense: Floats, first: int) -> "Entries":
        """With numbers of each step, [steps, n], in the columns from `first`, which come after all others."""
        steps, many = dense.shape
        lengths = self.lengths + many
        is_dense = np.zeros(int(lengths.sum()), dtype=bool)
        place = (lengths.cumsum() - many)[:, None] + np.arange(many)
        is_dense[place.ravel()] = True
        columns, values = np.empty(len(is_dense), np.int32), np.empty(len(is_dense), np.float32)
        columns[is_dense] = np.tile(np.arange(first, first + many, dtype=np.int32), steps)
        values[is_dense] = dense.ravel()
        columns[~is_dense], values[~is_dense] = self.columns, self.values
        return Entries(columns, values, lengths)

    def of(self, steps: NDArray[np.int64]) -> "Entries":
        if len(steps) == len(self.lengths) and bool((np.diff(steps) == 1).all()):
            return self
        starts = np.concatenate([[0], self.lengths.cumsum()])[steps]
        lengths = self.lengths[steps]
        firsts = np.concatenate([[0], lengths.cumsum()[:-1]])
        place = np.repeat(starts - firsts, lengths) + np.arange(lengths.sum())
        return Entries(self.columns[place], self.values[place], lengths)

    def matrix(self, chosen: NDArray[np.bool_], columns: NDArray[np.int32], width: int) -> sparse.csr_matrix:
        """[steps, width] of the chosen entries, in these columns; float64, which products need not convert then."""
        ends, values = np.concatenate([[0], self.lengths.cumsum()]), self.values
        shape = len(self.lengths), width
        if not chosen.any():
            return sparse.csr_matrix(shape)
        if not chosen.all():
            before = np.zeros(len(chosen) + 1, dtype=np.min_scalar_type(-len(chosen)))  # signed, and no wider
            np.cumsum(chosen, out=before[1:])
            ends, values, columns = before[ends], values[chosen], columns[chosen]
        return sparse.csr_matrix((values.astype(np.float64), columns, ends), shape=shape)


def text_entries(agent_texts: Sequence[str], observations: Sequence[str]) -> "Entries":
    """Of each step by what the agent wrote at it, and what its calls gave back; columns ascending within a step."""
    parts = [Entries(np.empty(0, np.int32), np.empty(0, np.float32), np.empty(0, np.int64))]
    for start, end in _blocks(agent_texts, observations):
        parts.append(_block_entries(agent_texts[start:end], observations[start:end]))
    return Entries.join(parts)


def item_entries(items: Sequence[StepTexts]) -> Entries:
    """Of their texts, step after step. Equal steps are hashed once."""
    steps = [texts for item in items for texts in zip(item.agent_texts, item.observations, strict=True)]
    rows: dict[tuple[str, str], int] = {}
    places = np.array([rows.setdefault(texts, len(rows)) for texts in steps], dtype=np.int64)
    return text_entries([text for text, _ in rows], [seen for _, seen in rows]).of(places)


def _blocks(agent_texts: Sequence[str], observations: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Starts and ends of steps that are hashed together, so that what is computed of them stays in the caches of the
    processor."""
    start, characters = 0, 0
    for place, texts in enumerate(zip(agent_texts, observations, strict=True)):
        characters += sum(map(len, texts))
        if characters >= _BLOCK_CHARACTERS:
            yield start, place + 1
            start, characters = place + 1, 0
    if start < len(agent_texts):
        yield start, len(agent_texts)


def _block_entries(agent_texts: Sequence[str], observations: Sequence[str]) -> "Entries":
    channels = (
        word_columns_by_text(agent_texts),
        piece_columns_by_text(agent_texts),
        word_columns_by_text(observations, salt=1),
    )
    found = np.concatenate(
        [(owners * 3 + place) * COLUMNS + columns for place, (owners, columns) in enumerate(channels)]
    )
    found.sort()
    firsts = np.flatnonzero(np.diff(found, prepend=-1))
    counts, found = np.diff(firsts, append=len(found)), found[firsts]
    channel = found // COLUMNS  # of which step, too
    values = np.log1p(counts)
    squares = np.bincount(channel, values * values, 3 * len(agent_texts))
    scale = np.tile(_LENGTHS, len(agent_texts)) / np.sqrt(np.where(squares > 0, squares, 1.0))
    return Entries(
        (found - (channel // 3) * FIRST_STRUCTURE).astype(np.int32),
        (values * scale[channel]).astype(np.float32),
        np.bincount(channel // 3, minlength=len(agent_texts)),
    )


def scaled_channel(counts: Floats, length: float) -> Floats:
    values = np.log1p(counts)
    norm = float(np.sqrt(values @ values))
    return values * (length / norm if norm else 0.0)
