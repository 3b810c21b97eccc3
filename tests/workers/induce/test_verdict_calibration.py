"""Scores to probabilities."""

import numpy as np
import pytest

from workers.induce.verdict_calibration import fit_calibration


def test_scores_that_tell_nothing_leave_the_frequency() -> None:
    dice = np.random.default_rng(0)
    mentioned = np.zeros((200, 2), dtype=bool)
    mentioned[:40, 0] = mentioned[:100, 1] = True
    found = fit_calibration(dice.normal(size=(200, 2, 2)), mentioned)(dice.normal(size=(500, 2, 2)))
    assert found.mean(axis=0) == pytest.approx([0.2, 0.5], abs=0.05)
    assert found.std(axis=0).max() < 0.06


def test_probabilities_are_as_frequent_as_they_say() -> None:
    dice = np.random.default_rng(1)
    scores = dice.normal(size=(4000, 1, 1))
    logits = -1.0 + 2.0 * scores[:, :, 0]
    mentioned = dice.random((4000, 1)) < 1 / (1 + np.exp(-logits))
    found = fit_calibration(scores, mentioned)(scores)[:, 0]
    for low, high in ((0.0, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 1.0)):
        inside = (found >= low) & (found < high)
        assert mentioned[inside].mean() == pytest.approx(found[inside].mean(), abs=0.04)


def test_a_score_against_the_mentions_is_not_used() -> None:
    scores = np.linspace(-1, 1, 100).reshape(100, 1, 1)
    found = fit_calibration(scores, (scores[:, :, 0] < 0))
    assert found.weights == pytest.approx([0.0])


def test_a_side_that_no_other_task_shows_is_improbable() -> None:
    dice = np.random.default_rng(2)
    scores = dice.normal(size=(100, 1, 2))
    calibration = fit_calibration(scores, scores[:, :, 0] > 0)
    unknown = calibration(np.full((1, 1, 2), -np.inf))
    assert np.isfinite(unknown).all()
    assert unknown < calibration(scores).min() + 1e-9
