"""The maze's walls, and that the benchmark runs."""

import numpy as np

from benchmarks.point_maze import STEPS, Logs, corridor, measure, moved


def test_walls_stop_a_point_and_gaps_let_it_through() -> None:
    place = np.array([[0.5, 0.3], [0.9, 0.3], [0.5, 0.3], [0.02, 0.98]])
    action = np.array([[0.0, 0.1], [0.0, 0.1], [0.05, 0.0], [-0.1, 0.4]])
    expected = np.array([[0.5, 0.3], [0.9, 0.4], [0.55, 0.3], [0.0, 1.0]])
    np.testing.assert_allclose(moved(place, action), expected)
    assert corridor(np.array([[0.1, 0.1], [0.1, 0.5], [0.1, 0.9]])).tolist() == [0, 1, 2]


def test_logs_follow_their_actions_and_later_places_are_later() -> None:
    dice = np.random.default_rng(0)
    logs = Logs.drawn(dice, 5)
    for step in range(STEPS):
        np.testing.assert_allclose(
            moved(logs.places[:, step], logs.actions[:, step]), logs.places[:, step + 1]
        )
    log, step, place = logs.later(dice, 2)
    assert len(log) == 5 * STEPS * 2 and (place > step).all() and place.max() <= STEPS


def test_it_runs() -> None:
    found = measure(0, 10, 5, epochs=1)
    assert set(found) == {"cloning", "hindsight cloning", "scores", "difference"}
    assert 0 <= found["scores"]["all"] <= 1
