"""Stages of demonstrations: the best division, by brute force, and the loss by hand."""

from itertools import combinations

import numpy as np
import pytest
import torch

from workers.errors import RewardError
from workers.objectives import Example
from workers.objectives.perceptual import OBJECTIVE, best_stages, progress_loss
from workers.schema import DemonstrationRecord, OutcomeRecord, Part, Step, Task, Trajectory
from workers.schema.recipe import Recipe, parse_recipe


def numbers(*rows: tuple[float, ...]) -> Trajectory:
    return Trajectory(steps=tuple(Step(source="agent", features=row) for row in rows), task=Task(id="t"))


def texts(*said: str) -> Trajectory:
    steps = tuple(Step(source="agent", message=(Part(text=text),)) for text in said)
    return Trajectory(steps=steps, task=Task(id="t"))


def demonstrated(trajectory: Trajectory) -> DemonstrationRecord:
    return DemonstrationRecord(trajectory=trajectory, annotator="ann")


@pytest.mark.parametrize(("total", "count"), [(1, 1), (4, 4), (7, 3), (9, 2), (8, 5)])
def test_the_division_is_the_best_of_all(total, count):
    steps = np.random.default_rng(total).normal(size=(total, 3))

    def cost(cuts: tuple[int, ...]) -> float:
        parts = np.split(steps, cuts)
        return sum(((part - part.mean(0)) ** 2).sum() for part in parts)

    best = min(combinations(range(1, total), count - 1), key=cost)
    wanted = [sum(step >= cut for cut in best) for step in range(total)]
    assert best_stages(steps, count) == wanted


def test_loss_by_hand(recipe, batch):
    """Two stages, of which the second begins with the third step; 0 of what is no demonstration."""
    demonstration = numbers((0.0,), (0.1,), (5.0,), (5.1,))
    other = OutcomeRecord(trajectory=numbers((0.0,)), success=True)
    values = [(0.2, 0.5, 0.0, 1.0, 0.0), (0.0, 0.3)]
    given = batch("perceptual", [demonstrated(demonstration), other], values)
    objective = OBJECTIVE(recipe(objective="perceptual", stages=2), given.examples)
    assert objective.progress(demonstration) == [0.5, 0.5, 1.0, 1.0]
    wanted = [(0.2**2 + 0.0 + 0.5**2 + 0.0 + 1.0) / 5, 0.3**2 / 2]
    assert objective(given).flatten().tolist() == pytest.approx(wanted)
    rows = torch.randn(3, 2, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: progress_loss(x, torch.tensor([0.0, 0.5, 1.0])), rows)


def test_numbers_are_compared_on_one_scale(recipe):
    """The second number is a thousand times as large and changes at another step, by less than its spread."""
    run = numbers((0.0, 0.0), (0.0, 1000.0), (4.0, 0.0), (4.0, 1000.0))
    objective = OBJECTIVE(
        recipe(objective="perceptual", stages=2), [Example("perceptual", demonstrated(run), (0,))]
    )
    assert objective.progress(run) == [0.5, 0.5, 1.0, 1.0]


def test_texts_are_compared_by_their_words(recipe):
    run = texts("search the order", "search the order again", "refund sent", "refund sent today")
    objective = OBJECTIVE(
        recipe(objective="perceptual", stages=2), [Example("perceptual", demonstrated(run), (0,))]
    )
    assert objective.progress(run) == [0.5, 0.5, 1.0, 1.0]


def test_bad_input(recipe):
    short = demonstrated(texts("one", "two"))
    assert "fewer than 4 agent steps" in OBJECTIVE.reject_reason(short, recipe(stages=4))
    assert OBJECTIVE.reject_reason(short, recipe(stages=2)) is None
    other = OutcomeRecord(trajectory=texts("one"), success=True)
    assert OBJECTIVE.reject_reason(other, recipe(stages=4)) is None
    assert "no trajectory is marked" in OBJECTIVE.validate_dataset(
        [Example("perceptual", other, (0,))], Recipe()
    )
    with pytest.raises(RewardError, match="use 'value'"):
        parse_recipe({"objective": "perceptual", "aggregation": "sum"})
    with pytest.raises(RewardError, match=">= 2"):
        parse_recipe({"objective": "perceptual", "stages": 1})
