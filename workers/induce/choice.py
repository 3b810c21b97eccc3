"""How many metrics: as many as describe best what was said of runs that they were not made from.

Coverage falls with too few metrics, whose few examples cannot stand for everything, and redundancy rises with too many,
which are judged where no one asked. The number is the one whose harmonic mean of coverage and 1 - redundancy is highest
over three folds by task. Then what is left uncovered is clustered by itself, and joins while coverage rises.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.induce.clusters import Tree, alike_by_chance, grow
from workers.induce.evidence import Evidence, Places
from workers.induce.judging import Floats, Judge, Metric, Side, paired, side_of, verdicts

FOLDS = 3
MOST_ROUNDS = 3
NUMBERS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 64)  # of sides that are tried
MORE = (1, 2, 3, 4, 6)  # of sides that a later round adds
LEAST_RISE = 0.01  # of held-out coverage, for another round
_LEVELS = 24  # chances tried as the least at which a metric applies


@dataclass(frozen=True, slots=True)
class Induced:
    """Metrics with all that judges by them. alike: the cosine from which a point says what an example says."""

    sides: list[Side]
    metrics: list[Metric]
    judge: Judge
    alike: float
    least: float


@dataclass(frozen=True, slots=True)
class Tried:
    """What a number of sides gave on the folds: shares, and metrics on average. rounds: sides of each round."""

    rounds: tuple[int, ...]
    metrics: float
    coverage: float
    redundancy: float

    @property
    def worth(self) -> float:
        return worth(self.coverage, self.redundancy)


def worth(coverage: float, redundancy: float) -> float:
    """The harmonic mean of coverage and 1 - redundancy."""
    both = coverage + 1 - redundancy
    return 2 * coverage * (1 - redundancy) / both if both > 0 else 0.0


def fit(
    evidence: Evidence, rows: Places, rounds: Sequence[int], *, tree: Tree | None = None, seed: int = 0
) -> Induced:
    """Metrics of these aspects. rounds: how many sides at first, and how many of what is then uncovered, and so on."""
    alike = alike_by_chance(evidence, rows, seed=seed)
    sides: list[Side] = []
    left = rows
    for number, count in enumerate(rounds):
        if not len(left):
            break
        grown = tree if tree is not None and not number else grow(evidence, left, seed=seed)
        groups = grown.cut(count)
        for group in np.unique(groups):
            for sign in (1, -1):
                chosen = left[groups == group]
                chosen = chosen[[evidence.aspects[row].sign == sign for row in chosen]]
                if len(chosen):
                    sides.append(side_of(evidence, chosen))
        left = left[likeness(evidence, left, sides).max(axis=1) < alike]
    metrics = paired(evidence, sides, alike if tuple(rounds) != (1,) else -1.0)  # one is one
    return _judging(evidence, rows, sides, metrics, alike, seed)


def fit_groups(evidence: Evidence, groups: Sequence[Places], *, seed: int = 0) -> Induced:
    """Metrics that someone decided on: each group of aspects, none empty, is one."""
    rows = np.sort(np.concatenate(groups))
    sides: list[Side] = []
    metrics: list[Metric] = []
    for group in groups:
        signs = np.array([evidence.aspects[row].sign for row in group])
        places: dict[int, int] = {}
        for sign in (1, -1):
            if (signs == sign).any():
                places[sign] = len(sides)
                sides.append(side_of(evidence, group[signs == sign]))
        metrics.append(Metric(places.get(1), places.get(-1)))
    return _judging(evidence, rows, sides, metrics, alike_by_chance(evidence, rows, seed=seed), seed)


def _judging(
    evidence: Evidence,
    rows: Places,
    sides: list[Side],
    metrics: list[Metric],
    alike: float,
    seed: int,
) -> Induced:
    judge = Judge(evidence, sides, rows, seed=seed)
    induced = Induced(sides, metrics, judge, alike, 0.5)
    spoken_of = np.unique(evidence.of[rows])
    chances = judge.chances(judge.scores(evidence.steps, evidence.tasks)[0])
    least = _least(evidence, rows, induced, chances, spoken_of)
    return Induced(sides, metrics, judge, alike, least)


def likeness(evidence: Evidence, rows: Places, sides: Sequence[Side]) -> Floats:
    """[rows, sides]: the cosine to the nearest example of a side of the same sign; -1 of the other sign."""
    signs = np.array([evidence.aspects[row].sign for row in rows])
    out = np.full((len(rows), len(sides)), -1.0)
    for place, side in enumerate(sides):
        mine = signs == side.sign
        out[mine, place] = (evidence.text[rows[mine]] @ side.vectors.T).max(axis=1)
    return out


def matched(evidence: Evidence, rows: Places, induced: Induced, signs: NDArray[np.int8]) -> Places:
    """The metric each aspect is matched to among those that apply to its trajectory with its sign, or -1.

    signs: [all trajectories of the evidence, metrics].
    """
    alike = likeness(evidence, rows, induced.sides)
    best = np.full(len(rows), -1, dtype=np.intp)
    highest = np.full(len(rows), induced.alike)
    for place, metric in enumerate(induced.metrics):
        for side, sign in ((metric.good, 1), (metric.bad, -1)):
            if side is None:
                continue
            here = (signs[evidence.of[rows], place] == sign) & (alike[:, side] >= highest)
            best[here], highest[here] = place, alike[here, side]
    return best


def shares(
    evidence: Evidence, rows: Places, induced: Induced, signs: NDArray[np.int8], trajectories: Places
) -> tuple[float, float]:
    """Coverage of these aspects, redundancy of the traits of these trajectories; 1 where there is no trait."""
    best = matched(evidence, rows, induced, signs)
    used = np.zeros_like(signs, dtype=bool)
    used[evidence.of[rows[best >= 0]], best[best >= 0]] = True
    applying = int((signs[trajectories] != 0).sum())
    coverage = float((best >= 0).mean()) if len(rows) else 0.0
    return coverage, 1 - int(used[trajectories].sum()) / applying if applying else 1.0


def choose(evidence: Evidence, rows: Places, *, seed: int = 0) -> tuple[tuple[int, ...], list[Tried]]:
    """The rounds to induce with, and everything that was tried."""
    folds = split(evidence, rows, FOLDS, seed)
    parts = [(rows[folds != fold], rows[folds == fold]) for fold in range(FOLDS)]
    parts = [(train, test) for train, test in parts if len(train) and len(test)]
    if not parts:
        return (2,), []
    trees = [grow(evidence, train, seed=seed) for train, _ in parts]
    most = max(tree.leaves for tree in trees)
    tried: list[Tried] = []

    def attempt(rounds: tuple[int, ...]) -> Tried:
        found = []
        for (train, test), tree in zip(parts, trees, strict=True):
            induced = fit(evidence, train, rounds, tree=tree, seed=seed)
            spoken_of = np.unique(evidence.of[test])
            chances = induced.judge.chances(induced.judge.scores(evidence.steps, evidence.tasks)[0])
            signs = verdicts(chances, induced.metrics, induced.least)
            found.append((len(induced.metrics), *shares(evidence, test, induced, signs, spoken_of)))
        metrics, coverage, redundancy = np.mean(found, axis=0)
        tried.append(Tried(rounds, float(metrics), float(coverage), float(redundancy)))
        return tried[-1]

    first = [attempt((count,)) for count in NUMBERS if count <= max(most, 1)]
    best = max(first, key=lambda one: (one.worth, -one.metrics))
    while len(best.rounds) < MOST_ROUNDS:
        further = [attempt((*best.rounds, more)) for more in MORE]
        next_best = max(further, key=lambda one: (one.coverage, one.worth))
        if next_best.coverage < best.coverage + LEAST_RISE or next_best.worth < best.worth:
            break
        best = next_best
    return best.rounds, tried


def split(evidence: Evidence, rows: Places, folds: int, seed: int) -> Places:
    """[rows]: a fold for each aspect, by the task of its trajectory, or by trajectory where the tasks are too few."""
    of = evidence.of[rows]
    return folds_by_task(
        [evidence.tasks[one] for one in of], [evidence.names[one] for one in of], folds, seed
    )


def folds_by_task(tasks: Sequence[str], trajectories: Sequence[str], folds: int, seed: int) -> Places:
    """[n]: a fold for each of n things of which task and trajectory are given, as `split`."""
    names = tasks if len(set(tasks)) >= 2 * folds else trajectories
    distinct = sorted(set(names))
    order = np.random.default_rng(seed).permutation(len(distinct))
    fold = {name: int(order[place]) % folds for place, name in enumerate(distinct)}
    return np.array([fold[name] for name in names], dtype=np.intp)


def _least(evidence: Evidence, rows: Places, induced: Induced, chances: Floats, spoken_of: Places) -> float:
    """The chance from which a metric applies: the one of most worth where it was fitted, each task without its own."""
    best, found = -1.0, 0.5
    for level in np.unique(np.quantile(chances[spoken_of], np.linspace(0.2, 0.995, _LEVELS))):
        signs = verdicts(chances, induced.metrics, float(level))
        value = worth(*shares(evidence, rows, induced, signs, spoken_of))
        if value > best:
            best, found = value, float(level)
    return found
