"""The features of a linear model: a sparse matrix with a row for each agent step, kept for the passes of a fit."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from workers.text import STRUCTURE, StepTexts
from workers.text.ngrams import COLUMNS, pieces, words

Floats = NDArray[np.float64]
EntryValues = NDArray[np.float32]  # a weight times one is added up in float64
# The length of a channel's part of a step: the larger, the less the ridge penalty holds its weights back. Structure is
# multiplied by STRUCTURE_SCALE as it is: how much of it there is, is what it tells.
WORDS_LENGTH, PIECES_LENGTH, OBSERVATION_LENGTH, STRUCTURE_SCALE = 0.5, 0.5, 0.25, 0.7
FIRST_STRUCTURE = 3 * COLUMNS
FIRST_EMBEDDING = FIRST_STRUCTURE + len(STRUCTURE)
_STRUCTURE_COLUMNS = np.arange(FIRST_STRUCTURE, FIRST_EMBEDDING, dtype=np.int32)
UNSEEN = 4096  # columns for features that training never had
_BATCHES = 4  # kept as matrices of their own


def text_features(agent_text: str, observation: str) -> tuple[NDArray[np.int32], EntryValues]:
    """columns, values: [entries] of what the agent wrote at a step, and what its calls gave back."""
    channels = [
        _channel(*words(agent_text), 0, WORDS_LENGTH),
        _channel(*pieces(agent_text), COLUMNS, PIECES_LENGTH),
        *([_channel(*words(observation, salt=1), 2 * COLUMNS, OBSERVATION_LENGTH)] if observation else []),
    ]
    columns, values = (np.concatenate(parts) for parts in zip(*channels, strict=True))
    return columns, values.astype(np.float32)


def _channel(
    columns: NDArray[np.int64], counts: Floats, first: int, length: float
) -> tuple[NDArray[np.int32], Floats]:
    return (columns + first).astype(np.int32), scaled_channel(counts, length)


def scaled_channel(counts: Floats, length: float) -> Floats:
    values = np.log1p(counts)
    norm = float(np.sqrt(values @ values))
    return values * (length / norm if norm else 0.0)


@dataclass(frozen=True, slots=True)
class DesignRows:
    """matrix: [steps of all items, known features] sparse. unseen: [steps, UNSEEN], the other features, hashed again.
    structure: [steps, numbers]. counts: steps by item. known: the features of `matrix`."""

    matrix: sparse.csr_matrix
    unseen: sparse.csr_matrix
    structure: Floats
    counts: tuple[int, ...]
    known: NDArray[np.int64]


class DesignMatrix:
    """The features of items, kept for the many passes of a fit, and for the fits of several models.

    Items are known by their key, and equal steps are hashed once. width: columns there may be.
    """

    def __init__(self, width: int = FIRST_EMBEDDING) -> None:
        self.width = width
        self._first: dict[bytes, int] = {}
        self._steps = 0
        # Of all steps, one after another; in several parts until they are read.
        self._columns: list[NDArray[np.int32]] = []
        self._values: list[EntryValues] = []
        self._lengths: list[NDArray[np.int64]] = []
        self._structure: list[Floats] = []
        self._chosen: dict[tuple[int, tuple[bytes, ...]], DesignRows] = {}

    def add(self, batch: Sequence[StepTexts]) -> None:
        columns, values, lengths = [], [], []
        by_text: dict[tuple[str, str], tuple[NDArray[np.int32], EntryValues]] = {}
        new = {item.key: item for item in batch if item.key not in self._first}
        embedding_columns = np.arange(FIRST_EMBEDDING, self.width, dtype=np.int32)
        for item, embeddings in zip(new.values(), self.embeddings(list(new.values())), strict=True):
            self._first[item.key] = self._steps
            self._steps += len(item.agent_texts)
            self._structure.append(item.structure.astype(np.float64) * STRUCTURE_SCALE)
            texts_by_step = zip(item.agent_texts, item.observations, strict=True)
            for texts, structure, embedding in zip(texts_by_step, item.structure, embeddings, strict=True):
                if texts not in by_text:
                    by_text[texts] = text_features(*texts)
                text_columns, text_values = by_text[texts]
                columns += [text_columns, _STRUCTURE_COLUMNS, embedding_columns]
                values += [
                    text_values,
                    (structure * STRUCTURE_SCALE).astype(np.float32),
                    embedding.astype(np.float32),
                ]
                lengths.append(len(text_columns) + len(structure) + len(embedding))
        if lengths:
            self._columns.append(np.concatenate(columns))
            self._values.append(np.concatenate(values))
            self._lengths.append(np.array(lengths))

    @property
    def entries_per_step(self) -> float:
        """The mean over the steps so far; 0 before the first."""
        return sum(map(len, self._columns)) / max(1, self._steps)

    def embeddings(self, batch: Sequence[Any]) -> Iterable[Floats]:
        """By item, [steps, width - FIRST_EMBEDDING]: what stands in the columns after the structure."""
        return [np.empty((len(item.agent_texts), 0)) for item in batch]

    def columns(self, batch: Sequence[StepTexts]) -> NDArray[np.int64]:
        """The features that these have, ascending."""
        entries, _ = self._of(batch)
        return np.unique(entries.columns).astype(np.int64)

    def rows(
        self,
        batch: Sequence[StepTexts],
        known: NDArray[np.int64],
        is_read: NDArray[np.bool_] | None = None,
    ) -> DesignRows:
        """Of these items, in this order; what is not there yet is added. known: the features of the model, ascending.
        is_read: [width], the columns that the model reads, all for None; others are not among the unseen features.

        The last few batches are kept as they are.
        """
        name = (id(known), tuple(item.key for item in batch))
        kept = self._chosen.get(name)
        if kept is None or kept.known is not known:
            entries, structure = self._of(batch)
            place = np.full(self.width, -1, dtype=np.int32)
            place[known] = np.arange(len(known))
            known_columns = place[entries.columns]
            is_known = known_columns >= 0
            is_unseen = ~is_known if is_read is None else ~is_known & is_read[entries.columns]
            counts = tuple(len(item.agent_texts) for item in batch)
            kept = DesignRows(
                entries.matrix(is_known, known_columns, len(known)),
                entries.matrix(is_unseen, entries.columns % UNSEEN, UNSEEN),
                structure,
                counts,
                known,
            )
            if len(self._chosen) >= _BATCHES:
                self._chosen.pop(next(iter(self._chosen)))
            self._chosen[name] = kept
        return kept

    def _of(self, batch: Sequence[StepTexts]) -> "tuple[_Entries, Floats]":
        self.add(batch)
        for parts in (self._columns, self._values, self._lengths, self._structure):
            if len(parts) > 1:  # one kind after the other: both copies of all would be twice the memory
                parts[:] = [np.concatenate(parts)]
        firsts = [self._first[item.key] for item in batch]
        steps = np.concatenate(
            [
                np.arange(first, first + len(item.agent_texts))
                for first, item in zip(firsts, batch, strict=True)
            ]
        )
        entries = _Entries(self._columns[0], self._values[0], self._lengths[0])
        return entries.of(steps), self._structure[0][steps]


@dataclass(frozen=True, slots=True)
class _Entries:
    """A sparse matrix. lengths: [steps], how many of the columns and values each step has, one step after another."""

    columns: NDArray[np.int32]
    values: EntryValues
    lengths: NDArray[np.int64]

    def of(self, steps: NDArray[np.int64]) -> "_Entries":
        if len(steps) == len(self.lengths) and bool((np.diff(steps) == 1).all()):
            return self
        starts = np.concatenate([[0], self.lengths.cumsum()])[steps]
        lengths = self.lengths[steps]
        firsts = np.concatenate([[0], lengths.cumsum()[:-1]])
        place = np.repeat(starts - firsts, lengths) + np.arange(lengths.sum())
        return _Entries(self.columns[place], self.values[place], lengths)

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
