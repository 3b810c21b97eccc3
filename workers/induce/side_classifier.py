"""How likely a trajectory is to be praised or blamed for something, by what its steps are like.

A side of a metric, its praise or its blame, is known by the steps its points are about. Two scores say how much a step
is like them: how much nearer it is to those (mean distance to the three nearest) than to steps in general, and a ridge
regression (`step_ridge`). A trajectory has the scores of its best step. Both are calibrated together
(`verdict_calibration`) on the trajectories that people commented on, each judged without the comments on its own task.
No language model is asked, and no word of the trajectory's own comments is read.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from workers.induce.clusters import MetricSide
from workers.induce.grounding import Evidence
from workers.induce.step_features import DoubleArray, FloatArray, IndexArray, StepVectors
from workers.induce.step_ridge import StepRidge
from workers.induce.verdict_calibration import fit_calibration

NEIGHBOURS = 3
MOST_EXEMPLARS = 100  # of a side
MOST_BACKGROUND = 600
_WEIGHTS = (0.5, 0.5, 0.3)  # of what was done, what came back, and how the step was
_FAR = 1e3
_BLOCK = 4000


class SideClassifier:
    """Fitted on `rows`: the aspects that may be known."""

    def __init__(
        self, evidence: Evidence, sides: Sequence[MetricSide], rows: IndexArray, *, seed: int = 0
    ) -> None:
        generator = np.random.default_rng(seed)
        self._task = {name: number for number, name in enumerate(dict.fromkeys(evidence.tasks))}
        points = _weighted_vectors(evidence.steps)
        tasks = np.array([self._task[evidence.tasks[of]] for of in evidence.steps.trajectory], dtype=np.intp)
        self._exemplars: list[FloatArray] = []
        self._exemplar_tasks: list[IndexArray] = []
        self.exemplar_aspects: list[IndexArray] = []
        targets = np.zeros((len(points), len(sides)))
        for place, side in enumerate(sides):
            known = side.rows[evidence.step[side.rows] >= 0]
            targets[evidence.step[known], place] = 1.0
            if len(known) > MOST_EXEMPLARS:
                known = np.sort(generator.choice(known, MOST_EXEMPLARS, replace=False))
            at = evidence.step[known]
            self._exemplars.append(points[at])
            self._exemplar_tasks.append(tasks[at])
            self.exemplar_aspects.append(known)
        commented = np.unique(evidence.trajectory[rows])
        at_large = np.flatnonzero(np.isin(evidence.steps.trajectory, commented))
        self._ridge = StepRidge(points[at_large], targets[at_large], tasks[at_large])
        at_large = np.sort(generator.permutation(at_large)[:MOST_BACKGROUND])
        self._background, self._background_tasks = points[at_large], tasks[at_large]
        scores = self.scores(evidence.steps, evidence.tasks)[0]
        mentioned = mentioned_sides(evidence, sides)
        self.calibration = fit_calibration(scores[commented], mentioned[commented])

    def probabilities(self, steps: StepVectors, tasks: Sequence[str]) -> DoubleArray:
        """[trajectories, sides]: that someone who comments on the trajectory mentions this."""
        return self.calibration(self.scores(steps, tasks)[0])

    def scores(self, steps: StepVectors, tasks: Sequence[str]) -> tuple[DoubleArray, IndexArray, IndexArray]:
        """Scores: [trajectories, sides, 2], of the nearest step and of the ridge regression's best, -inf of a side
        that no other task shows. Then [trajectories, sides]: the nearest step's `step`, and its exemplar, or -1.

        tasks: of the trajectories; what is known of a trajectory's own task does not count.
        """
        count, sides = len(tasks), len(self._exemplars)
        best = np.full((count, sides, 2), -np.inf)
        where, which = np.full((2, count, sides), -1, dtype=np.intp)
        numbers = np.array([self._task.get(task, -1) for task in tasks], dtype=np.intp)
        points = _weighted_vectors(steps)
        for start in range(0, len(points), _BLOCK):
            block = slice(start, start + _BLOCK)
            of = steps.trajectory[block]
            own = numbers[of]
            np.maximum.at(best[:, :, 1], of, self._ridge(points[block], own))
            usual = _nearest_exemplars(points[block], self._background, own, self._background_tasks)[0]
            usual = np.where(usual < _FAR, usual, 0.0)
            for side, (there, theirs) in enumerate(zip(self._exemplars, self._exemplar_tasks, strict=True)):
                if not len(there):
                    continue
                far, nearest = _nearest_exemplars(points[block], there, own, theirs)
                score = np.where(far < _FAR, usual - far, -np.inf)
                order = np.lexsort((-score, of))
                firsts = order[np.unique(of[order], return_index=True)[1]]
                better = firsts[score[firsts] > best[of[firsts], side, 0]]
                best[of[better], side, 0] = score[better]
                where[of[better], side] = steps.number[block][better]
                which[of[better], side] = nearest[better]
        best[np.isneginf(best[:, :, 0])] = -np.inf
        return best, where, which


def mentioned_sides(evidence: Evidence, sides: Sequence[MetricSide]) -> NDArray[np.bool_]:
    """[trajectories, sides]: whether a point of the trajectory belongs to the side."""
    found = np.zeros((len(evidence.names), len(sides)), dtype=bool)
    for place, side in enumerate(sides):
        found[evidence.trajectory[side.rows], place] = True
    return found


def _weighted_vectors(steps: StepVectors) -> FloatArray:
    action, observation, flag = _WEIGHTS
    return np.concatenate(
        [action * steps.actions, observation * steps.observations, flag * steps.flags], axis=1
    )


def _nearest_exemplars(
    points: FloatArray, there: FloatArray, own: IndexArray, theirs: IndexArray
) -> tuple[DoubleArray, IndexArray]:
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
