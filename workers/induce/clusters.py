"""Points that say the same, found by what they say and by what was done where they say it.

A few words say little ("Made up.", "No tool said it."). So a point is held next to others by three things: its own
embedding; what the agent did and what came back at the steps that points of like words are about; and how those steps
were (a call, a failure, the last one). The step of one point is noise, the steps of alike ones are not. Points of
different sign never meet. The tree is Ward's (1963), over distinct texts, so that a phrase that is used often weighs as
much as one that is not.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage

from workers.induce.embedding import Vectors
from workers.induce.evidence import Evidence, Numbers, Places, unit

MOST = 2000  # distinct texts in a tree; the others go to the nearest cluster
CHANCE = 0.02  # of pairs of points count as alike by chance
EXAMPLES = 5  # of each side of a metric; they are what it is matched by
_TEMPERATURE = 0.07  # of cosines: how alike words must be to share their steps
_FLAGS = 0.2
_APART = 3.0  # between the signs
_BLOCK = 2000


@dataclass(frozen=True, slots=True)
class Tree:
    """The tree over the distinct texts of some aspects. rows: those aspects.

    drawn: [leaves], the first aspect of each text in the tree. space: [leaves, dimensions], where it lies.
    leaf: of each row, the leaf of its text, or of the nearest where its text is not in the tree.
    """

    rows: Places
    drawn: Places
    space: Numbers
    leaf: Places
    links: NDArray[np.float64]

    @property
    def leaves(self) -> int:
        return len(self.drawn)

    def drawing(self) -> Numbers:
        """[leaves, 2]: the first two principal components, signs left out."""
        flat = self.space[:, :-1] - self.space[:, :-1].mean(axis=0)
        axes = np.linalg.svd(flat, full_matrices=False)[2][:2]
        out = np.zeros((self.leaves, 2), dtype=np.float32)
        out[:, : len(axes)] = flat @ axes.T
        return out

    def cut(self, groups: int) -> Places:
        """The group of each row, 0 to at most `groups` - 1."""
        if self.leaves < 2:
            return np.zeros(len(self.rows), dtype=np.intp)
        found = fcluster(self.links, min(groups, self.leaves), criterion="maxclust") - 1
        of_rows: Places = found[self.leaf].astype(np.intp)
        return of_rows


def grow(evidence: Evidence, rows: Places, *, seed: int = 0) -> Tree:
    """rows: the aspects to be put into groups, at least one."""
    signs = np.array([evidence.aspects[row].sign for row in rows])
    first, of_text = _distinct([evidence.aspects[row].feedback for row in rows], signs)
    if len(first) > MOST:
        first = np.sort(np.random.default_rng(seed).choice(first, MOST, replace=False))
    drawn = rows[first]
    place = {int(of_text[one]): number for number, one in enumerate(first)}
    known = np.array([place.get(int(text), -1) for text in of_text])
    basis = _Basis(evidence, drawn, rows, known)
    space = basis.space(evidence, drawn)
    leaf = np.empty(len(rows), dtype=np.intp)
    for start in range(0, len(rows), _BLOCK):
        block = slice(start, start + _BLOCK)
        leaf[block] = _nearest(basis.space(evidence, rows[block], alone=known[block] < 0), space)
    leaf = np.where(known >= 0, known, leaf)
    links = linkage(space, method="ward") if len(drawn) > 1 else np.zeros((0, 4))
    return Tree(rows=rows, drawn=drawn, space=space, leaf=leaf, links=links)


def typical(texts: Sequence[str], vectors: Vectors, most: int = EXAMPLES) -> list[int]:
    """Places of the distinct texts that stand best for all, the most typical first (greedy facility location)."""
    first, of_text = _distinct(texts, np.zeros(len(texts)))
    weight = np.bincount(of_text, minlength=len(first))
    if len(first) > MOST:
        kept = np.argsort(-weight, kind="stable")[:MOST]
        first, weight = first[kept], weight[kept]
    alike = vectors[first] @ vectors[first].T
    best, chosen = np.zeros(len(first)), list[int]()
    for _ in range(min(most, len(first))):
        gain = (np.maximum(alike, best) * weight).sum(axis=1)
        gain[chosen] = -1.0
        chosen.append(int(gain.argmax()))
        best = np.maximum(best, alike[chosen[-1]])
    return [int(first[one]) for one in chosen]


def alike_by_chance(evidence: Evidence, rows: Places, *, share: float = CHANCE, seed: int = 0) -> float:
    """The cosine that only this share of pairs of distinct points of one sign exceeds."""
    signs = np.array([evidence.aspects[row].sign for row in rows])
    first, _ = _distinct([evidence.aspects[row].feedback for row in rows], signs)
    left, right = np.random.default_rng(seed).integers(len(first), size=(2, 20_000))
    kept = (left != right) & (signs[first[left]] == signs[first[right]])
    if not kept.any():
        return 1.0
    a, b = evidence.text[rows[first[left[kept]]]], evidence.text[rows[first[right[kept]]]]
    return float(np.quantile((a * b).sum(axis=1), 1 - share))


class _Basis:
    """Where points lie next to those that were drawn. text: of each of `rows` its place in `drawn`, or -1."""

    def __init__(self, evidence: Evidence, drawn: Places, rows: Places, text: Places) -> None:
        self._text = evidence.text[drawn]
        self._mean = self._text.mean(axis=0)
        self._signs = _signs(evidence, drawn)
        kept = text >= 0
        self._counts = np.bincount(text[kept], minlength=len(drawn)).astype(np.float32)
        sides = (evidence.done, evidence.seen, evidence.flags)
        self._steps = tuple(_sums(side[rows[kept]], text[kept], len(drawn)) for side in sides)

    def space(self, evidence: Evidence, rows: Places, *, alone: NDArray[np.bool_] | None = None) -> Numbers:
        """[rows, dimensions]. alone: whose text was not drawn, so that its own step is to be counted besides."""
        text, signs = evidence.text[rows], _signs(evidence, rows)
        alike = np.exp((text @ self._text.T - 1) / _TEMPERATURE)
        alike *= signs[:, None] == self._signs[None]
        own = np.zeros((len(rows), 1), np.float32) if alone is None else alone[:, None].astype(np.float32)
        total = np.maximum((alike * self._counts).sum(axis=1, keepdims=True) + own, 1e-12)
        mine = (evidence.done[rows], evidence.seen[rows], evidence.flags[rows])
        done, seen, flags = (
            (alike @ side + own * step) / total for side, step in zip(self._steps, mine, strict=True)
        )
        return np.concatenate(
            [
                unit(text - self._mean),
                unit(done),
                unit(seen),
                _FLAGS * flags,
                _APART * signs[:, None].astype(np.float32),
            ],
            axis=1,
        )


def _signs(evidence: Evidence, rows: Places) -> NDArray[np.int64]:
    return np.array([evidence.aspects[row].sign for row in rows], dtype=np.int64)


def _sums(rows: Numbers, groups: Places, count: int) -> Numbers:
    out = np.zeros((count, rows.shape[1]), dtype=np.float32)
    np.add.at(out, groups, rows)
    return out


def _nearest(points: Numbers, among: Numbers) -> Places:
    far = (among**2).sum(axis=1)[None] - 2 * points @ among.T
    found: Places = far.argmin(axis=1)
    return found


def _distinct(texts: Sequence[str], signs: NDArray[np.generic]) -> tuple[Places, Places]:
    """The places of the first of each text and sign, in order; of each place, which of them it is."""
    number: dict[tuple[str, float], int] = {}
    first: list[int] = []
    of_text = np.empty(len(texts), dtype=np.intp)
    for place, key in enumerate(zip(texts, signs.astype(float).tolist(), strict=True)):
        if key not in number:
            number[key] = len(first)
            first.append(place)
        of_text[place] = number[key]
    return np.array(first, dtype=np.intp), of_text
