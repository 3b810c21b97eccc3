"""Which steps a metric is commented on at, as a linear function of their vectors.

A ridge regression for each side of a metric, from all steps of the trajectories that were commented on to 1 where a
point of this side is about the step and 0 elsewhere. What is asked of a task comes from the regression that was fitted
without a tenth of the tasks, which it is in.
"""

import numpy as np

from workers.induce.step_features import DoubleArray, FloatArray, IndexArray

_FOLDS = 10
_PENALTY = 1.0  # as if so many steps of unit length had said 0 in each direction


class StepRidge:
    """steps: [n, features]. targets: [n, sides], 0 or 1. tasks: [n], the number of each step's task."""

    def __init__(self, steps: FloatArray, targets: DoubleArray, tasks: IndexArray) -> None:
        width, sides = steps.shape[1], targets.shape[1]
        self._mean = steps.mean(axis=0) if len(steps) else np.zeros(width)
        base = targets.mean(axis=0) if len(targets) else np.zeros(sides)
        x, y = (steps - self._mean).astype(float), (targets - base).astype(float)
        parts = [tasks % _FOLDS == fold for fold in range(_FOLDS)]
        grams = np.array([x[part].T @ x[part] for part in parts])
        moments = np.array([x[part].T @ y[part] for part in parts])
        ridge = _PENALTY * np.eye(width)
        without = [
            np.linalg.solve(grams.sum(0) - gram + ridge, moments.sum(0) - moment)
            for gram, moment in zip(grams, moments, strict=True)
        ]
        # [folds + 1, features, sides]; the last: of all tasks, for those that no comment is about.
        self._weights = np.array([*without, np.linalg.solve(grams.sum(0) + ridge, moments.sum(0))])

    def __call__(self, steps: FloatArray, tasks: IndexArray) -> DoubleArray:
        """[steps, sides]. tasks: -1 of one that is not known."""
        out = np.zeros((len(steps), self._weights.shape[2]))
        folds = np.where(tasks < 0, _FOLDS, tasks % _FOLDS)
        for fold in np.unique(folds):
            rows = folds == fold
            out[rows] = (steps[rows] - self._mean) @ self._weights[fold]
        return out
