"""The features of a linear model: a sparse matrix with a row for each agent step, kept for the passes of a fit."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from workers.models.backbones.condition_entries import CONDITIONED_WIDTH, joined_entries
from workers.models.backbones.step_entries import (
    FIRST_EMBEDDING,
    FIRST_STRUCTURE,
    STRUCTURE_SCALE,
    Entries,
    EntryValues,
    Floats,
    item_entries,
)
from workers.text import StepTexts

UNSEEN = 4096  # columns for features that training never had
_BATCHES = 4  # kept as matrices of their own
# Up to here the rows of steps that are summed are kept, for fits and scores that need them; beyond, they are not.
MOST_STEP_ENTRIES = 30_000_000


@dataclass(frozen=True, slots=True)
class DesignRows:
    """matrix: [steps of all items, known features] sparse. unseen: [steps, UNSEEN], the other features, hashed again.
    structure: [steps, numbers]. counts: steps by item. known: the features of `matrix`."""

    matrix: sparse.csr_matrix
    unseen: sparse.csr_matrix
    structure: Floats
    counts: tuple[int, ...]
    known: NDArray[np.int64]


def column_places(known: NDArray[np.int64], width: int) -> NDArray[np.int32]:
    """[width]: the place of each column among the known ones, -1 for the others."""
    places = np.full(width, -1, dtype=np.int32)
    places[known] = np.arange(len(known))
    return places


def new_design_matrix(conditioned: Sequence[str]) -> "DesignMatrix":
    """For items whose renderer reads these conditions."""
    return DesignMatrix(CONDITIONED_WIDTH) if conditioned else DesignMatrix()


class DesignMatrix:
    """The features of items, kept for the many passes of a fit, and for the fits of several models.

    Items are known by their key, and equal steps are hashed once. width: columns there may be.
    """

    def __init__(self, width: int = FIRST_EMBEDDING) -> None:
        self.width = width
        self._first: dict[bytes, int] = {}
        self._rows = 0
        self._sums: SummedMatrix | None = None
        # Of all rows, one after another; in several parts until they are read.
        self._columns: list[NDArray[np.int32]] = []
        self._values: list[EntryValues] = []
        self._lengths: list[NDArray[np.int64]] = []
        self._structure: list[Floats] = []
        self._chosen: dict[tuple[int, tuple[bytes, ...]], DesignRows] = {}

    def add(self, batch: Sequence[StepTexts]) -> None:
        new = list({item.key: item for item in batch if item.key not in self._first}.values())
        if not new:
            return
        entries, structure = self.read(new)
        for item in new:
            self._first[item.key] = self._rows
            self._rows += self.row_count(item)
        self._structure.append(structure)
        self._columns.append(entries.columns)
        self._values.append(entries.values)
        self._lengths.append(entries.lengths)

    def read(self, items: Sequence[StepTexts]) -> tuple[Entries, Floats]:
        """The rows of these items, whether they are kept or not, and the structure of each row."""
        structure = np.concatenate([item.structure for item in items]).astype(np.float64) * STRUCTURE_SCALE
        dense = np.concatenate([structure, np.concatenate([*self.embeddings(items)])], 1)
        return joined_entries(items, item_entries(items).with_dense(dense, FIRST_STRUCTURE)), structure

    def row_count(self, item: StepTexts) -> int:
        return len(item.agent_texts)

    def has(self, items: Iterable[StepTexts]) -> bool:
        """Whether the rows of all of them are kept."""
        return all(item.key in self._first for item in items)

    @property
    def entries(self) -> int:
        """How many are kept."""
        return sum(map(len, self._columns))

    def expected_entries(self, items: Iterable[StepTexts]) -> float:
        """How many these have, by the mean over the rows that are kept; 0 before the first."""
        return self.entries / max(1, self._rows) * sum(map(self.row_count, items))

    @property
    def sums(self) -> "SummedMatrix":
        """The same features of whole trajectories."""
        if self._sums is None:
            self._sums = SummedMatrix(self)
        return self._sums

    def embed_ahead(self, batch: Sequence[Any]) -> Iterator[int]:
        """Fill the cache that `embeddings` reads; how much is done, now and then."""
        return iter(())

    def embeddings(self, batch: Sequence[Any]) -> Iterable[Floats]:
        """By item, [steps, width - FIRST_EMBEDDING]: what stands in the columns after the structure."""
        return [np.empty((len(item.agent_texts), 0)) for item in batch]

    def columns(self, batch: Sequence[StepTexts]) -> NDArray[np.int64]:
        """The features that these have, ascending."""
        entries, _ = self.rows_of(batch)
        return np.unique(entries.columns).astype(np.int64)

    def rows(
        self,
        batch: Sequence[StepTexts],
        known: NDArray[np.int64],
        is_read: NDArray[np.bool_] | None = None,
        places: NDArray[np.int32] | None = None,
    ) -> DesignRows:
        """Of these items, in this order; what is not there yet is added. known: the features of the model, ascending.
        is_read: [width], the columns that the model reads, all for None; others are not among the unseen features.
        places: `column_places` of the known features, where the caller has kept them.

        The last few batches are kept as they are.
        """
        name = (id(known), tuple(item.key for item in batch))
        kept = self._chosen.get(name)
        if kept is None or kept.known is not known:
            entries, structure = self.rows_of(batch)
            places = column_places(known, self.width) if places is None else places
            known_columns = places[entries.columns]
            is_known = known_columns >= 0
            is_unseen = ~is_known if is_read is None else ~is_known & is_read[entries.columns]
            counts = tuple(self.row_count(item) for item in batch)
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

    def rows_of(self, batch: Sequence[StepTexts]) -> tuple[Entries, Floats]:
        """The rows of these items, in this order, and the structure of each; what is not there yet is added."""
        self.add(batch)
        for parts in (self._columns, self._values, self._lengths, self._structure):
            if len(parts) > 1:  # one kind after the other: both copies of all would be twice the memory
                parts[:] = [np.concatenate(parts)]
        firsts = [self._first[item.key] for item in batch]
        steps = np.concatenate(
            [
                np.arange(first, first + self.row_count(item))
                for first, item in zip(firsts, batch, strict=True)
            ]
        )
        entries = Entries(self._columns[0], self._values[0], self._lengths[0])
        return entries.of(steps), self._structure[0][steps]


class SummedMatrix(DesignMatrix):
    """A design matrix with one row for each item, the sum over its steps: all that a linear model needs where only
    rewards at the ends of trajectories are read.

    Steps have many words and all of structure in common, so that a fit goes through a fraction of the entries. steps:
    the rows that are summed.
    """

    def __init__(self, steps: DesignMatrix) -> None:
        super().__init__(steps.width)
        self.steps = steps

    def row_count(self, item: StepTexts) -> int:
        return 1

    def embed_ahead(self, batch: Sequence[Any]) -> Iterator[int]:
        return self.steps.embed_ahead(batch)

    def read(self, items: Sequence[StepTexts]) -> tuple[Entries, Floats]:
        is_kept = self.steps.has(items) or self.steps.entries < MOST_STEP_ENTRIES
        entries, structure = self.steps.rows_of(items) if is_kept else self.steps.read(items)
        counts = [len(item.agent_texts) for item in items]
        ends = np.concatenate([[0], np.cumsum(entries.lengths)])[np.concatenate([[0], np.cumsum(counts)])]
        matrix = sparse.csr_matrix(
            (entries.values.astype(np.float64), entries.columns.copy(), ends), (len(items), self.width)
        )
        matrix.sum_duplicates()
        summed = Entries(
            matrix.indices.astype(np.int32, copy=False),
            matrix.data.astype(np.float32),
            np.diff(matrix.indptr).astype(np.int64),
        )
        return summed, np.add.reduceat(structure, np.concatenate([[0], np.cumsum(counts)])[:-1])
