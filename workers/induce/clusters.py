"""Step 3 of an induction: points that mean the same form the two sides of a metric, its praise and its blame.

A few words mean little ("Made up.", "No tool said it."). So points are compared by three things: their words, as
`point_space` places them; the actions and observations of the steps that points with similar words are about; and the
flags of those steps (a call, a failure, the last one). The step of one point is noise, the steps of alike ones are not.
Points of different sign never meet. The tree is Ward's (1963), over distinct texts, so that a phrase that is used often
weighs as much as one that is not.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage

from workers.induce.grounding import Evidence
from workers.induce.step_features import DoubleArray, FloatArray, IndexArray, unit_rows

MAX_TEXTS = 2000  # distinct texts in a tree; the others go to the nearest cluster
CHANCE_SHARE = 0.05  # of pairs of points count as alike by chance
_CHANCE_PAIRS = 5000  # that are drawn
EXAMPLES = 5  # of each side of a metric; they are what it is matched by
_TEMPERATURE = 0.1  # of cosines: how alike words must be to share their steps
_FLAG_WEIGHT = 0.2
_SIGN_DISTANCE = 3.0  # between the signs
_BLOCK = 2000
_ROUNDING = 1e-5  # of the cosine of equal texts


@dataclass(frozen=True, slots=True)
class ClusterTree:
    """The tree over the distinct texts of some aspects. rows: those aspects.

    drawn: [leaves], the first aspect of each text in the tree. space: [leaves, dimensions], where it lies.
    leaf: of each row, the leaf of its text, or of the nearest where its text is not in the tree.
    similarity: `chance_similarity` of the rows.
    """

    rows: IndexArray
    drawn: IndexArray
    space: FloatArray
    leaf: IndexArray
    linkage_matrix: DoubleArray
    similarity: float

    @property
    def leaves(self) -> int:
        return len(self.drawn)

    def principal_plane(self) -> FloatArray:
        """[leaves, 2]: the first two principal components, signs left out."""
        flat = self.space[:, :-1] - self.space[:, :-1].mean(axis=0)
        axes = np.linalg.svd(flat, full_matrices=False)[2][:2]
        out = np.zeros((self.leaves, 2), dtype=np.float32)
        out[:, : len(axes)] = flat @ axes.T
        return out

    def cut(self, groups: int) -> IndexArray:
        """The group of each row, 0 to at most `groups` - 1."""
        if self.leaves < 2:
            return np.zeros(len(self.rows), dtype=np.intp)
        found = fcluster(self.linkage_matrix, min(groups, self.leaves), criterion="maxclust") - 1
        row_groups: IndexArray = found[self.leaf].astype(np.intp)
        return row_groups


@dataclass(frozen=True, slots=True)
class MetricSide:
    """rows: the aspects it was made of. examples: rows of the most typical ones, whose words represent it."""

    sign: int
    rows: IndexArray
    examples: IndexArray
    vectors: FloatArray


@dataclass(frozen=True, slots=True)
class Metric:
    """good, bad: places in the list of sides; at least one is there."""

    good: int | None
    bad: int | None


@dataclass(frozen=True, slots=True)
class MetricClusters:
    """similarity: the cosine from which a point means the same as an example."""

    sides: list[MetricSide]
    metrics: list[Metric]
    similarity: float


def cluster_metrics(
    evidence: Evidence,
    rows: IndexArray,
    rounds: Sequence[int],
    *,
    tree: ClusterTree | None = None,
    seed: int = 0,
) -> MetricClusters:
    """rounds: the number of clusters at first, then of what is left uncovered, and so on. tree: of these rows."""
    first_tree = tree if tree is not None else build_tree(evidence, rows, seed=seed)
    similarity = first_tree.similarity
    sides: list[MetricSide] = []
    left = rows
    for number, count in enumerate(rounds):
        if not len(left):
            break
        grown = build_tree(evidence, left, seed=seed) if number else first_tree
        groups = grown.cut(count)
        for group in np.unique(groups):
            sides += _split_by_sign(evidence, left[groups == group])
        left = left[example_similarity(evidence, left, sides).max(axis=1) < similarity]
    is_single = tuple(rounds) == (1,)
    return MetricClusters(sides, pair_sides(evidence, sides, -1.0 if is_single else similarity), similarity)


def group_metrics(evidence: Evidence, groups: Sequence[IndexArray], *, seed: int = 0) -> MetricClusters:
    """Each group of aspects, none empty, is a metric."""
    sides: list[MetricSide] = []
    metrics: list[Metric] = []
    for group in groups:
        places: dict[int, int] = {}
        for side in _split_by_sign(evidence, group):
            places[side.sign] = len(sides)
            sides.append(side)
        metrics.append(Metric(places.get(1), places.get(-1)))
    rows = np.sort(np.concatenate(groups))
    return MetricClusters(sides, metrics, chance_similarity(evidence, rows, seed=seed))


def _split_by_sign(evidence: Evidence, rows: IndexArray) -> Iterator[MetricSide]:
    signs = np.array([evidence.aspects[row].sign for row in rows])
    for sign in (1, -1):
        if (signs == sign).any():
            yield make_side(evidence, rows[signs == sign])


def make_side(evidence: Evidence, rows: IndexArray) -> MetricSide:
    texts = [evidence.aspects[row].feedback for row in rows]
    examples = rows[typical_texts(texts, evidence.text[rows])]
    return MetricSide(evidence.aspects[rows[0]].sign, rows, examples, evidence.text[examples])


def pair_sides(evidence: Evidence, sides: Sequence[MetricSide], similarity: float) -> list[Metric]:
    """Praise and blame of the same thing, where each is the other's nearest and nearer than `similarity`; the rest
    are metrics of one side."""
    middle = np.array([evidence.text[side.rows].mean(axis=0) for side in sides])
    middle /= np.maximum(np.linalg.norm(middle, axis=1, keepdims=True), 1e-9)
    cosines = middle @ middle.T
    signs = np.array([side.sign for side in sides])
    cosines[signs[:, None] == signs[None]] = -1.0
    nearest = cosines.argmax(axis=1)
    metrics: list[Metric] = []
    for place, side in enumerate(sides):
        other = int(nearest[place])
        meets = side.sign != sides[other].sign and int(nearest[other]) == place
        meets = meets and bool(cosines[place, other] >= similarity)
        if meets and side.sign < 0:
            continue  # added with the other side
        mine, its = (place, other if meets else None)
        metrics.append(Metric(mine, its) if side.sign > 0 else Metric(its, mine))
    return metrics


def example_similarity(evidence: Evidence, rows: IndexArray, sides: Sequence[MetricSide]) -> DoubleArray:
    """[rows, sides]: the cosine to the nearest example of a side of the same sign; -1 of the other sign."""
    signs = np.array([evidence.aspects[row].sign for row in rows])
    out = np.full((len(rows), len(sides)), -1.0)
    for place, side in enumerate(sides):
        mine = signs == side.sign
        out[mine, place] = (evidence.text[rows[mine]] @ side.vectors.T).max(axis=1)
    return out


def build_tree(evidence: Evidence, rows: IndexArray, *, seed: int = 0) -> ClusterTree:
    """rows: the aspects to be put into groups, at least one."""
    signs = np.array([evidence.aspects[row].sign for row in rows])
    first, of_text = _distinct_texts([evidence.aspects[row].feedback for row in rows], signs)
    if len(first) > MAX_TEXTS:
        first = np.sort(np.random.default_rng(seed).choice(first, MAX_TEXTS, replace=False))
    drawn = rows[first]
    place = {int(of_text[row]): number for number, row in enumerate(first)}
    known = np.array([place.get(int(text), -1) for text in of_text])
    basis = _ClusterSpace(evidence, drawn, rows, known)
    space = basis.space(evidence, drawn)
    leaf = np.empty(len(rows), dtype=np.intp)
    for start in range(0, len(rows), _BLOCK):
        block = slice(start, start + _BLOCK)
        leaf[block] = _nearest_rows(basis.space(evidence, rows[block], is_apart=known[block] < 0), space)
    leaf = np.where(known >= 0, known, leaf)
    linkage_matrix = linkage(space, method="ward") if len(drawn) > 1 else np.zeros((0, 4))
    return ClusterTree(
        rows=rows,
        drawn=drawn,
        space=space,
        leaf=leaf,
        linkage_matrix=linkage_matrix,
        similarity=chance_similarity(evidence, rows, seed=seed),
    )


def typical_texts(texts: Sequence[str], vectors: FloatArray, count: int = EXAMPLES) -> list[int]:
    """Indices of at most `count` distinct texts that represent all best, the best first (greedy facility location)."""
    first, of_text = _distinct_texts(texts, np.zeros(len(texts)))
    weight = np.bincount(of_text, minlength=len(first))
    if len(first) > MAX_TEXTS:
        kept = np.argsort(-weight, kind="stable")[:MAX_TEXTS]
        first, weight = first[kept], weight[kept]
    alike = vectors[first] @ vectors[first].T
    best, chosen = np.zeros(len(first)), list[int]()
    for _ in range(min(count, len(first))):
        gain = (np.maximum(alike, best) * weight).sum(axis=1)
        gain[chosen] = -1.0
        chosen.append(int(gain.argmax()))
        best = np.maximum(best, alike[chosen[-1]])
    return [int(first[number]) for number in chosen]


def chance_similarity(
    evidence: Evidence, rows: IndexArray, *, share: float = CHANCE_SHARE, seed: int = 0
) -> float:
    """The cosine that only this share of pairs of distinct points of one sign exceeds."""
    signs = np.array([evidence.aspects[row].sign for row in rows])
    first, _ = _distinct_texts([evidence.aspects[row].feedback for row in rows], signs)
    left, right = np.random.default_rng(seed).integers(len(first), size=(2, _CHANCE_PAIRS))
    kept = (left != right) & (signs[first[left]] == signs[first[right]])
    if not kept.any():
        return 1.0
    a, b = evidence.text[rows[first[left[kept]]]], evidence.text[rows[first[right[kept]]]]
    return min(float(np.quantile((a * b).sum(axis=1), 1 - share)), 1.0 - _ROUNDING)


class _ClusterSpace:
    """Coordinates of points relative to the drawn ones. text: of each of `rows` its place in `drawn`, or -1."""

    def __init__(self, evidence: Evidence, drawn: IndexArray, rows: IndexArray, text: IndexArray) -> None:
        self._text = evidence.text[drawn]
        self._mean = self._text.mean(axis=0)
        self._sign_of_text = _aspect_signs(evidence, drawn)
        kept = text >= 0
        self._counts = np.bincount(text[kept], minlength=len(drawn)).astype(np.float32)
        sides = (evidence.actions, evidence.observations, evidence.flags)
        self._steps = tuple(_sum_by_group(side[rows[kept]], text[kept], len(drawn)) for side in sides)

    def space(
        self, evidence: Evidence, rows: IndexArray, *, is_apart: NDArray[np.bool_] | None = None
    ) -> FloatArray:
        """[rows, dimensions]. is_apart: whose text was not drawn, so that its own step is counted too."""
        text, signs = evidence.text[rows], _aspect_signs(evidence, rows)
        alike = np.exp((text @ self._text.T - 1) / _TEMPERATURE)
        alike *= signs[:, None] == self._sign_of_text[None]
        own = (
            np.zeros((len(rows), 1), np.float32) if is_apart is None else is_apart[:, None].astype(np.float32)
        )
        total = np.maximum((alike * self._counts).sum(axis=1, keepdims=True) + own, 1e-12)
        mine = (evidence.actions[rows], evidence.observations[rows], evidence.flags[rows])
        actions, observations, flags = (
            (alike @ side + own * step) / total for side, step in zip(self._steps, mine, strict=True)
        )
        return np.concatenate(
            [
                unit_rows(text - self._mean),
                unit_rows(actions),
                unit_rows(observations),
                _FLAG_WEIGHT * flags,
                _SIGN_DISTANCE * signs[:, None].astype(np.float32),
            ],
            axis=1,
        )


def _aspect_signs(evidence: Evidence, rows: IndexArray) -> IndexArray:
    return np.array([evidence.aspects[row].sign for row in rows], dtype=np.int64)


def _sum_by_group(rows: FloatArray, groups: IndexArray, count: int) -> FloatArray:
    out = np.zeros((count, rows.shape[1]), dtype=np.float32)
    np.add.at(out, groups, rows)
    return out


def _nearest_rows(points: FloatArray, among: FloatArray) -> IndexArray:
    far = (among**2).sum(axis=1)[None] - 2 * points @ among.T
    found: IndexArray = far.argmin(axis=1)
    return found


def _distinct_texts(texts: Sequence[str], signs: NDArray[np.generic]) -> tuple[IndexArray, IndexArray]:
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
