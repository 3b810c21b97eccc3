"""The regression that a model of numbers is to beat, on data whose best regression is known."""

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from workers.models.build import renderer_of
from workers.schema import (
    FeedbackRecord,
    OutcomeRecord,
    Part,
    PreferenceRecord,
    RatingRecord,
    Step,
    Task,
    Trajectory,
)
from workers.schema.recipe import Recipe
from workers.train.number_baseline import number_scores
from workers.train.number_moments import moments

TASKS = 60


def walk(task: int, width: float, random: np.random.Generator) -> Trajectory:
    """Numbers around 0 that go as far as `width` to either side; their mean tells nothing."""
    rows = random.choice((-1.0, 1.0), 6) * width
    return Trajectory(
        steps=tuple(Step(source="agent", features=(float(row), float(random.normal()))) for row in rows),
        task=Task(id=f"t{task}"),
    )


def comparisons() -> Iterator[FeedbackRecord]:
    """The smaller one is better."""
    random = np.random.default_rng(0)
    for task in range(TASKS):
        small, large = (walk(task, width, random) for width in (1.0, 1.2))
        a, b = (small, large) if task % 2 else (large, small)
        yield PreferenceRecord(a=a, b=b, choice="a" if task % 2 else "b", annotator="ann")


def ratings() -> Iterator[FeedbackRecord]:
    random = np.random.default_rng(0)
    for task in range(TASKS):
        width = float(random.uniform(1, 5))
        rating = 5 - width
        yield RatingRecord(
            trajectory=walk(task, width, random), rating=rating, scale=(0.0, 5.0), annotator="ann"
        )


def outcomes() -> Iterator[FeedbackRecord]:
    random = np.random.default_rng(0)
    for task in range(TASKS):
        width = float(random.uniform(1, 5))
        yield OutcomeRecord(trajectory=walk(task, width, random), success=width < 3)


def model_of(records: Sequence[Any]) -> Any:
    """Of a model only what the baseline asks of it."""
    example = records[0].a if isinstance(records[0], PreferenceRecord) else records[0].trajectory
    renderer = renderer_of(Recipe(backbone="features"), [example])
    return SimpleNamespace(renderer=renderer, render=renderer.render, compared_by={None})


def width_of(trajectory: Trajectory) -> float:
    assert trajectory.steps[0].features is not None
    return abs(trajectory.steps[0].features[0])


@pytest.mark.parametrize("records_of", [comparisons, ratings, outcomes])
def test_how_far_numbers_go_is_found_though_their_mean_tells_nothing(records_of: Any) -> None:
    records = list(records_of())
    training, reported = records[:40], records[40:]
    found = number_scores(model_of(records), training, reported)
    for scores, of in ((found.held_out, reported), (found.training, training)):
        sides = [
            side for record in of for side in (getattr(record, "a", None), getattr(record, "b", None)) if side
        ]
        sides = sides or [record.trajectory for record in of]
        assert set(scores) == {side.content_hash for side in sides}
        raws, widths = zip(*((scores[side.content_hash].raw, width_of(side)) for side in sides), strict=True)
        assert np.corrcoef(raws, widths)[0, 1] < -0.8
    assert set(found.folds) == {f"t{task}" for task in range(40)}


def test_too_few_tasks_or_one_answer_alone_give_none() -> None:
    records = list(outcomes())
    assert not number_scores(model_of(records), records[:3], records[40:]).held_out
    failures = [record for record in records if isinstance(record, OutcomeRecord) and not record.success]
    assert not number_scores(model_of(records), failures, records[40:]).held_out


def test_trajectories_that_the_model_cannot_read_are_left_out() -> None:
    records = list(outcomes())
    text = Trajectory(steps=(Step(source="agent", message=(Part(text="Done."),)),), task=Task(id="text"))
    unread = OutcomeRecord(trajectory=text, success=True)
    found = number_scores(model_of(records), [*records[:40], unread], [*records[40:], unread])
    assert len(found.held_out) == 20
    assert text.content_hash not in {*found.training, *found.held_out}


def team_of(rows: Sequence[Sequence[float]]) -> Trajectory:
    """By turns of two agents."""
    steps = tuple(
        Step(
            source="agent",
            features=tuple(float(number) for number in row),
            speaker=("north", "south")[place % 2],
        )
        for place, row in enumerate(rows)
    )
    return Trajectory(steps=steps, task=Task(id="t"))


def team_comparisons() -> Iterator[FeedbackRecord]:
    """The team is better whose nearest agent is nearer, whichever it is, and wherever the other one is."""
    random = np.random.default_rng(0)

    def played(task: int, near: float) -> Trajectory:
        rows = []
        for _ in range(8):
            distances = random.permutation([near, random.uniform(2, 6)])
            angles = random.uniform(0, 2 * np.pi, 2)
            rows += [
                [length * np.cos(angle), length * np.sin(angle)]
                for length, angle in zip(distances, angles, strict=True)
            ]
        return Trajectory(steps=team_of(rows).steps, task=Task(id=f"t{task}"))

    for task in range(TASKS):
        near = random.uniform(0.5, 1.4)
        best, worst = played(task, near), played(task, near + 0.5)
        a, b = (best, worst) if task % 2 else (worst, best)
        yield PreferenceRecord(a=a, b=b, choice="a" if task % 2 else "b", annotator="ann")


def test_how_near_the_nearest_agent_of_a_team_is_is_read() -> None:
    records = list(team_comparisons())
    training, reported = records[:40], records[40:]
    scores = number_scores(model_of(records), training, reported).held_out
    right = [
        (scores[record.a.content_hash].raw > scores[record.b.content_hash].raw) == (record.choice == "a")
        for record in reported
        if isinstance(record, PreferenceRecord)
    ]
    assert len(right) == 20
    assert np.mean(right) >= 0.9


def test_the_numbers_of_a_team_are_these() -> None:
    team = team_of([(3.0, 4.0), (0.0, -1.0)])
    reads = renderer_of(Recipe(backbone="features"), [team])
    means, sizes, squares, lengths, extremes = moments(reads, reads.render(team))
    assert means.tolist() == [np.log1p(2), 1.5, 1.5]
    assert sizes.tolist() == [1.5, 2.5]
    assert squares.tolist() == [4.5, 8.5]
    assert lengths.tolist() == [3.0]
    # At the first step only one agent has acted.
    first, second = np.array([3, 4, 3, 4, 9, 16, 5]), np.array([0, -1, 0, 1, 0, 1, 1])
    assert extremes.tolist() == [*((first + second) / 2), *first]


def test_the_numbers_of_sets_are_over_their_rows() -> None:
    step = Step(source="agent", features=(7.0, 2.0, 3.0, 4.0, 6.0, 8.0))
    empty = Step(source="agent", features=(7.0, 0.0))
    metadata = {"numbers_before_sets": 1, "sets": [{"name": "near", "numbers": ["x", "y"]}]}
    seen = Trajectory(steps=(step, empty), task=Task(id="t"), metadata=metadata)
    reads = renderer_of(Recipe(backbone="features"), [seen])
    means, _, _, lengths, extremes = moments(reads, reads.render(seen))
    assert means.tolist() == [np.log1p(2), 7.0, np.log1p(2), 4.5, 6.0]
    assert lengths.tolist() == [7.5]
    assert extremes.tolist() == [3, 4, 3, 4, 9, 16, 5, 6, 8, 6, 8, 36, 64, 10]
    none = Trajectory(steps=(empty,), task=Task(id="t"), metadata=metadata)
    assert [len(part) for part in moments(reads, reads.render(none))] == [5, 3, 3, 1, 14]
