"""Nearest neighbours in embedding space, for each type of feedback."""

import numpy as np
import pytest

from tests.workers.conftest import trajectory
from workers.evaluate import neighbour_baseline
from workers.evaluate.neighbour_baseline import MIN_TASKS, neighbour_scores
from workers.schema import (
    OutcomeRecord,
    PreferenceRecord,
    RankingRecord,
    RatingRecord,
    ScoreRecord,
    StepLabelRecord,
)

pytestmark = pytest.mark.ml
TASKS = 30


def runs(count: int = TASKS) -> list:
    """Of each task a good and a bad one."""
    return [
        [trajectory(f"{word} {number}", task=f"t{number}") for word in ("good", "bad")]
        for number in range(count)
    ]


def embedded(pairs, *, noise: float = 0.05) -> dict:
    """Good and bad ones lie apart, with noise."""
    dice = np.random.default_rng(0)
    return {
        run.content_hash: (
            np.array([[1.0, 0.0, 0.0] if place == 0 else [0.0, 1.0, 0.0]])
            + noise * dice.standard_normal((1, 3))
        ).astype(np.float32)
        for pair in pairs
        for place, run in enumerate(pair)
    }


def compared(pair, **more) -> PreferenceRecord:
    return PreferenceRecord(a=pair[0], b=pair[1], choice="a", annotator="ann", **more)


RECORDS = {
    "preference": lambda pair: [compared(pair)],
    "outcome": lambda pair: [OutcomeRecord(trajectory=run, success=run is pair[0]) for run in pair],
    "scores": lambda pair: [
        record
        for run in pair
        for record in (
            RatingRecord(trajectory=run, rating=float(run is pair[0]), scale=(0.0, 1.0), annotator="a"),
            ScoreRecord(
                trajectory=run, criterion="kind", value=float(run is pair[1]), scale=(0.0, 1.0), annotator="a"
            ),
        )
    ],
    "steps": lambda pair: [
        StepLabelRecord(
            trajectory=run, has_first_error=True, first_error=None if run is pair[0] else 0, annotator="a"
        )
        for run in pair
    ],
}


@pytest.mark.parametrize("part", RECORDS)
def test_what_is_near_a_good_one_is_good(part) -> None:
    pairs = runs()
    training, asked = (
        [record for pair in some for record in RECORDS[part](pair)] for some in (pairs[:20], pairs[20:])
    )
    found = neighbour_scores(training, asked, embedded(pairs), {None})
    assert list(found) == [part]
    for scores, some in ((found[part].held_out, pairs[20:]), (found[part].training, pairs[:20])):
        assert len(scores) == 2 * len(some)
        for good, bad in some:
            first, second = scores[good.content_hash], scores[bad.content_hash]
            if part == "steps":
                assert first.labels[0]["good"] > 0.9 > 0.1 > second.labels[0]["good"]
            else:
                assert first.raw > 0.9 > 0.1 > second.raw
            if part == "scores":
                assert first.criteria["kind"] < 0.1 < 0.9 < second.criteria["kind"]


def test_a_ranking_is_its_pairs() -> None:
    pairs = runs()
    records = [
        RankingRecord(trajectories=tuple(pair), ranks=(1, 2), annotator="ann", criterion=None)
        for pair in pairs
    ]
    ranked = neighbour_scores(records[:20], records[20:], embedded(pairs), {None})["preference"]
    same = neighbour_scores(
        [compared(pair) for pair in pairs[:20]],
        [compared(pair) for pair in pairs[20:]],
        embedded(pairs),
        {None},
    )["preference"]
    assert ranked == same


def test_training_scores_do_not_use_the_own_task() -> None:
    """Every task lies alone, with labels of its own: whoever looked at the own task would be always right."""
    pairs, dice = runs(), np.random.default_rng(1)
    places = {
        run.content_hash: (dice.standard_normal((1, 8)) + 20 * direction).astype(np.float32)
        for pair in pairs
        for direction in [dice.standard_normal((1, 8))]
        for run in pair
    }
    outcomes = [
        OutcomeRecord(trajectory=run, success=number % 2 == 0)
        for number, pair in enumerate(pairs)
        for run in pair
    ]
    found = neighbour_scores(outcomes, outcomes, places, {None})["outcome"]
    right = [
        (found.training[record.trajectory.content_hash].raw > 0.5) == record.success for record in outcomes
    ]
    assert np.mean(right) < 0.8


def test_more_neighbours_where_labels_are_noise_and_few_where_they_are_not(monkeypatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(
        neighbour_baseline,
        "_neighbour_means",
        counted := _counting(asked, neighbour_baseline._neighbour_means),
    )
    assert counted
    pairs, dice = runs(200), np.random.default_rng(2)
    noise = [
        OutcomeRecord(trajectory=run, success=bool(dice.random() < 0.5)) for pair in pairs for run in pair
    ]
    neighbour_scores(noise, [], embedded(pairs, noise=1.0), {None})
    assert asked[-1] >= 80
    fine = [
        OutcomeRecord(trajectory=run, success=number % 2 == 0)
        for number, pair in enumerate(pairs)
        for run in pair
    ]
    angle = {
        run.content_hash: np.array([[np.cos(turn), np.sin(turn)]], dtype=np.float32)
        for number, pair in enumerate(pairs)
        for run in pair
        for turn in [(number % 8) * np.pi / 4 + 0.001 * number]
    }
    neighbour_scores(fine, [], angle, {None})
    assert asked[-1] <= 20


def _counting(asked: list[int], means):
    def wrapped(space, queries, folds, counts, check):
        asked.append(max(counts))
        return means(space, queries, folds, counts, check)

    return wrapped


def test_none_for_few_tasks_other_criteria_and_unknown_trajectories() -> None:
    pairs = runs(MIN_TASKS)
    records = [compared(pair) for pair in pairs]
    assert neighbour_scores(records[:-1], records, embedded(pairs), {None}) == {}
    assert neighbour_scores(records, records, embedded(pairs), {"kind"}) == {}
    assert neighbour_scores(records, records, {}, {None}) == {}
    found = neighbour_scores(records, [compared(runs(40)[-1])], embedded(pairs), {None})
    assert found["preference"].held_out == {}


def test_it_can_be_stopped() -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    pairs = runs()
    with pytest.raises(KeyboardInterrupt):
        neighbour_scores([compared(pair) for pair in pairs], [], embedded(pairs), {None}, check=stop)
