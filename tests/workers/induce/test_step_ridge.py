"""The ridge regression on steps."""

import numpy as np
import pytest

from workers.induce.step_ridge import StepRidge


def test_a_task_is_judged_by_the_others() -> None:
    dice = np.random.default_rng(0)
    steps = dice.normal(size=(120, 6)).astype(np.float32)
    tasks = np.repeat(np.arange(30), 4)
    targets = (steps[:, :1] > 0).astype(float)
    found = StepRidge(steps, targets, tasks)
    without = tasks % 10 != 3
    by_others = StepRidge(steps[without], targets[without], tasks[without])
    mine = tasks == 3
    mean, base = steps.mean(axis=0), targets.mean()
    x, y = (steps - mean)[without].astype(float), targets[without, 0] - base
    weights = np.linalg.solve(x.T @ x + np.eye(6), x.T @ y)
    assert found(steps[mine], tasks[mine])[:, 0] == pytest.approx((steps[mine] - mean) @ weights, rel=1e-4)
    ranks = by_others(steps[mine], np.full(4, -1))[:, 0].argsort()
    assert found(steps[mine], tasks[mine])[:, 0].argsort().tolist() == ranks.tolist()


def test_what_is_unknown_is_judged_by_all() -> None:
    steps = np.array([[1.0], [-1.0]], dtype=np.float32)
    found = StepRidge(steps, np.array([[1.0], [0.0]]), np.array([0, 1]))
    assert found(steps, np.array([-1, -1]))[:, 0] == pytest.approx([1 / 3, -1 / 3])


def test_no_step_is_no_error() -> None:
    found = StepRidge(np.zeros((0, 3), np.float32), np.zeros((0, 2)), np.zeros(0, np.intp))
    assert found(np.ones((1, 3), np.float32), np.array([-1])).tolist() == [[0.0, 0.0]]
