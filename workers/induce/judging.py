"""Metrics, and which of them a trajectory keeps or breaks: by the steps that people spoke of.

A side of a metric, its praise or its blame, is known by the steps its points are about. A trajectory shows it as far as
one of its steps is nearer to those (mean distance to the three nearest) than to steps at large. How far that is turned
into the chance that someone says so (Platt 1999), fitted on the trajectories that people commented on, each judged
without what was said in its own task. No language model is asked, and no word of the trajectory's own comments is read.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from workers.induce.clusters import typical
from workers.induce.embedding import Vectors
from workers.induce.evidence import Evidence, Numbers, Places, Steps

Floats = NDArray[np.float64]
NEIGHBOURS = 3
MOST_EXEMPLARS = 100  # of a side
MOST_BACKGROUND = 600
_WEIGHTS = (0.5, 0.5, 0.3)  # of what was done, what came back, and how the step was
_FAR = 1e3
_BLOCK = 4000


@dataclass(frozen=True, slots=True)
class Side:
    """rows: the aspects it was made of. examples: rows of the most typical ones, whose words stand for it."""

    sign: int
    rows: Places
    examples: Places
    vectors: Vectors


@dataclass(frozen=True, slots=True)
class Metric:
    """good, bad: places in the list of sides; at least one is there."""

    good: int | None
    bad: int | None


def side_of(evidence: Evidence, rows: Places) -> Side:
    texts = [evidence.aspects[row].feedback for row in rows]
    examples = rows[typical(texts, evidence.text[rows])]
    return Side(evidence.aspects[rows[0]].sign, rows, examples, evidence.text[examples])


def paired(evidence: Evidence, sides: Sequence[Side], alike: float) -> list[Metric]:
    """Praise and blame of the same, where each is the other's nearest and nearer than `alike`; the rest stand alone."""
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
        meets = meets and bool(cosines[place, other] >= alike)
        if meets and side.sign < 0:
            continue  # said by the other
        mine, its = (place, other if meets else None)
        metrics.append(Metric(mine, its) if side.sign > 0 else Metric(its, mine))
    return metrics


class Judge:
    """Fitted on what people said: `rows`, the aspects that may be known."""

    def __init__(self, evidence: Evidence, sides: Sequence[Side], rows: Places, *, seed: int = 0) -> None:
        dice = np.random.default_rng(seed)
        self._task = {name: number for number, name in enumerate(dict.fromkeys(evidence.tasks))}
        points = vectors_of(evidence.steps)
        tasks = np.array([self._task[evidence.tasks[of]] for of in evidence.steps.of], dtype=np.intp)
        self.exemplars: list[Numbers] = []
        self.exemplar_tasks: list[Places] = []
        self.exemplar_aspects: list[Places] = []
        for side in sides:
            known = side.rows[evidence.step[side.rows] >= 0]
            if len(known) > MOST_EXEMPLARS:
                known = np.sort(dice.choice(known, MOST_EXEMPLARS, replace=False))
            at = evidence.step[known]
            self.exemplars.append(points[at])
            self.exemplar_tasks.append(tasks[at])
            self.exemplar_aspects.append(known)
        spoken_of = np.unique(evidence.of[rows])
        at_large = np.flatnonzero(np.isin(evidence.steps.of, spoken_of))
        at_large = np.sort(dice.permutation(at_large)[:MOST_BACKGROUND])
        self.background, self.background_tasks = points[at_large], tasks[at_large]
        self.calibration = np.zeros((len(sides), 4))  # mean, scale, slope, intercept
        self._calibrate(evidence, sides, spoken_of)

    def scores(self, steps: Steps, tasks: Sequence[str]) -> tuple[Floats, Places, Places]:
        """[trajectories, sides]: how near the nearest step is; its `step`, or -1; and the nearest exemplar, or -1.

        tasks: of the trajectories; exemplars of a trajectory's own task do not count.
        """
        count, sides = len(tasks), len(self.exemplars)
        best = np.full((count, sides), -_FAR)
        where, which = np.full((2, count, sides), -1, dtype=np.intp)
        numbers = np.array([self._task.get(task, -1) for task in tasks], dtype=np.intp)
        points = vectors_of(steps)
        for start in range(0, len(points), _BLOCK):
            block = slice(start, start + _BLOCK)
            of = steps.of[block]
            own = numbers[of]
            usual = _near(points[block], self.background, own, self.background_tasks)[0]
            usual = np.where(usual < _FAR, usual, 0.0)
            for side, (there, theirs) in enumerate(zip(self.exemplars, self.exemplar_tasks, strict=True)):
                if not len(there):
                    continue
                far, nearest = _near(points[block], there, own, theirs)
                score = np.where(far < _FAR, usual - far, -_FAR)
                order = np.lexsort((-score, of))
                firsts = order[np.unique(of[order], return_index=True)[1]]
                better = firsts[score[firsts] > best[of[firsts], side]]
                best[of[better], side] = score[better]
                where[of[better], side] = steps.index[block][better]
                which[of[better], side] = nearest[better]
        return best, where, which

    def chances(self, scores: Floats) -> Floats:
        """[trajectories, sides]: how likely someone who comments on it says so."""
        mean, scale, slope, intercept = self.calibration.T
        found: Floats = 1 / (1 + np.exp(-(slope * np.clip((scores - mean) / scale, -8, 8) + intercept)))
        return found

    def _calibrate(self, evidence: Evidence, sides: Sequence[Side], spoken_of: Places) -> None:
        scores = self.scores(evidence.steps, evidence.tasks)[0][spoken_of]
        for place, side in enumerate(sides):
            said = np.isin(spoken_of, np.unique(evidence.of[side.rows]))
            yes, no = int(said.sum()), int((~said).sum())
            share = np.where(said, (yes + 1) / (yes + 2), 1 / (no + 2))
            known = scores[:, place] > -_FAR
            if not known.any() or not no or not yes:
                even = (yes + 1) / (yes + no + 2)
                self.calibration[place] = (0.0, 1.0, 0.0, float(np.log(even / (1 - even))))
                continue
            mean, scale = float(scores[known, place].mean()), float(scores[known, place].std()) + 1e-6
            x = np.clip((scores[:, place] - mean) / scale, -8, 8)
            fitted = LogisticRegression(C=1.0).fit(
                np.concatenate([x, x])[:, None],
                np.concatenate([np.ones(len(x)), np.zeros(len(x))]),
                sample_weight=np.concatenate([share, 1 - share]),
            )
            slope, intercept = float(fitted.coef_[0, 0]), float(fitted.intercept_[0])
            self.calibration[place] = (mean, scale, max(slope, 0.0), intercept)


def verdicts(chances: Floats, metrics: Sequence[Metric], least: float) -> NDArray[np.int8]:
    """[trajectories, metrics]: 1, -1, or 0 where neither side is as likely as `least`."""
    out = np.zeros((len(chances), len(metrics)), dtype=np.int8)
    none = np.zeros(len(chances))
    for place, metric in enumerate(metrics):
        good = chances[:, metric.good] if metric.good is not None else none
        bad = chances[:, metric.bad] if metric.bad is not None else none
        out[:, place] = np.where(np.maximum(good, bad) < least, 0, np.where(good >= bad, 1, -1))
    return out


def vectors_of(steps: Steps) -> Numbers:
    done, seen, flags = _WEIGHTS
    return np.concatenate([done * steps.done, seen * steps.seen, flags * steps.flags], axis=1)


def _near(points: Numbers, there: Numbers, own: Places, theirs: Places) -> tuple[Floats, Places]:
    """The mean distance to the nearest few, and the nearest; those of the own task are far."""
    squared = (points**2).sum(axis=1)[:, None] + (there**2).sum(axis=1)[None] - 2 * points @ there.T
    far = np.sqrt(np.maximum(squared, 0))
    far[own[:, None] == theirs[None]] = _FAR
    few = min(NEIGHBOURS, far.shape[1])
    near = np.partition(far, few - 1, axis=1)[:, :few].astype(float)
    near = np.where(near >= _FAR, np.nan, near)
    none = np.isnan(near).all(axis=1)
    near[none] = _FAR
    return np.nanmean(near, axis=1), far.argmin(axis=1)
