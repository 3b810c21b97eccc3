"""How many metrics, how well they do where they were not made, and what judges by them."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from tests.workers.induce.synthetic_evidence import evidence
from workers.induce.clusters import Metric, make_side, pair_sides
from workers.induce.grounding import Evidence
from workers.induce.induction_files import Trait
from workers.induce.metric_classifier import (
    evaluate_metrics,
    induce_from_groups,
    induce_metrics,
    match_aspects,
    metric_signs,
    metric_worth,
)
from workers.induce.metric_report import compute_meta_metrics
from workers.induce.metric_selection import choose_rounds, split_by_task


@pytest.fixture(scope="module")
def given() -> tuple[Evidence, list[int]]:
    return evidence(phrases=5)


def test_worth_is_the_harmonic_mean() -> None:
    assert metric_worth(0.5, 0.5) == pytest.approx(0.5)
    assert metric_worth(1.0, 0.0) == 1.0
    assert metric_worth(0.9, 0.9) == pytest.approx(0.18)
    assert metric_worth(0.0, 1.0) == 0.0


def test_the_number_of_behaviours_is_found(given: tuple[Evidence, list[int]]) -> None:
    known, truth = given
    rows = np.arange(len(known.aspects))
    rounds, tried = choose_rounds(known, rows)
    assert rounds[0] in (4, 5)
    best = next(trial for trial in tried if trial.rounds == rounds)
    one = next(trial for trial in tried if trial.rounds == (1,))
    many = max(tried, key=lambda each: each.rounds[0])
    assert best.coverage > 0.9
    assert best.redundancy < 0.1
    assert best.worth > one.worth + 0.1
    assert best.worth > many.worth
    induced = induce_metrics(known, rows, rounds)
    side_of_row = np.full(len(rows), -1)
    for place, side in enumerate(induced.clusters.sides):
        side_of_row[side.rows] = place
    assert adjusted_rand_score(truth, side_of_row) > 0.9


def test_held_out_runs_are_judged_by_their_steps(given: tuple[Evidence, list[int]]) -> None:
    """Runs no one told the judge of show what their steps show."""
    known, truth = given
    rows = np.arange(len(known.aspects))
    folds = split_by_task(known, rows, 4, 0)
    train, test = rows[folds != 0], rows[folds == 0]
    induced = induce_from_groups(
        known, [train[np.array(truth)[train] == behaviour] for behaviour in range(4)]
    )
    scores, where, which = induced.classifier.scores(known.steps, known.tasks)
    signs = metric_signs(induced.classifier.calibration(scores), induced.clusters.metrics, induced.least)
    for row in test:
        aspect, behaviour = known.aspects[row], truth[row]
        assert signs[known.trajectory[row], behaviour] == aspect.sign
        side = (
            induced.clusters.metrics[behaviour].good
            if aspect.sign > 0
            else induced.clusters.metrics[behaviour].bad
        )
        assert side is not None
        assert where[known.trajectory[row], side] == aspect.step
        told = known.aspects[induced.classifier.exemplar_aspects[side][which[known.trajectory[row], side]]]
        assert told.behaviour == aspect.behaviour


def test_no_run_is_judged_by_what_was_said_in_its_task(given: tuple[Evidence, list[int]]) -> None:
    known, _ = given
    rows = np.arange(len(known.aspects))
    mine = rows[[known.tasks[of] == "task-0" for of in known.trajectory[rows]]]
    induced = induce_from_groups(known, [mine])
    scores, _, which = induced.classifier.scores(known.steps, known.tasks)
    for place, task in enumerate(known.tasks):
        assert (which[place] == -1).all() == (task == "task-0")
        assert np.isneginf(scores[place]).all() == (task == "task-0")


def test_shares_are_the_meta_metrics(given: tuple[Evidence, list[int]]) -> None:
    known, _ = given
    rows = np.arange(len(known.aspects))
    induced = induce_metrics(known, rows, (3,))
    signs = metric_signs(
        induced.classifier.probabilities(known.steps, known.tasks),
        induced.clusters.metrics,
        induced.least,
    )
    best = match_aspects(known, rows, induced.clusters, signs)
    width = len(induced.clusters.metrics)
    traits = [
        Trait(trajectory=name, metric=str(place), sign=int(signs[run, place]))
        for run, name in enumerate(known.names)
        for place in range(width)
    ]
    matches = {row: [int(known.trajectory[row]) * width + int(best[row])] for row in rows if best[row] >= 0}
    meta = compute_meta_metrics(known.aspects, traits, matches)
    found = evaluate_metrics(known, rows, induced)
    assert found == (pytest.approx(meta.coverage), pytest.approx(meta.redundancy))


def test_praise_and_blame_of_one_thing_are_one_metric() -> None:
    known, truth = evidence(behaviours=4, signs=(1, -1), words=0.2)
    # Behaviours 0 and 1 are worded alike: one praised, the other blamed.
    text = known.text.copy()
    kinds = np.array(truth)
    text[kinds == 1] = text[kinds == 0][0]
    known = type(known)(**{name: getattr(known, name) for name in known.__slots__} | {"text": text})
    sides = [make_side(known, np.flatnonzero(kinds == kind)) for kind in range(4)]
    assert pair_sides(known, sides, 0.5) == [Metric(0, 1), Metric(2, None), Metric(None, 3)]
    assert pair_sides(known, [sides[1]], -1.0) == [Metric(None, 0)], "blame alone is a metric too"


def test_tasks_are_on_one_side_of_a_split(given: tuple[Evidence, list[int]]) -> None:
    known, _ = given
    rows = np.arange(len(known.aspects))
    folds = split_by_task(known, rows, 3, 0)
    for task in set(known.tasks):
        assert len({int(folds[row]) for row in rows if known.tasks[known.trajectory[row]] == task}) <= 1
    assert set(folds.tolist()) == {0, 1, 2}
    assert not np.array_equal(folds, split_by_task(known, rows, 3, 1))
