"""Models that learn values: what they say of chains whose values are known."""

import random
from dataclasses import replace

import pytest
import torch

from workers.errors import RewardError
from workers.evaluate.predictions import score_records
from workers.models import load
from workers.schema import OutcomeRecord, Part, Step, Task, Trajectory
from workers.schema.recipe import parse_recipe
from workers.train.cross_validation import CrossValidation
from workers.train.events import no_report
from workers.train.pipeline import train

pytestmark = pytest.mark.ml


def run(task: int, first: float, *, reward: float | None = None) -> OutcomeRecord:
    """Three steps; the first decides whether it succeeds, and the last number tells tasks apart. reward: of the second
    step."""
    own = task / 100
    rows = ((1.0, 0.0, first, own), (0.0, 1.0, 0.0, own), (0.0, 0.0, 0.0, own))
    rewards = (None, reward, None)
    steps = tuple(
        Step(source="agent", features=row, reward=given) for row, given in zip(rows, rewards, strict=True)
    )
    return OutcomeRecord(trajectory=Trajectory(steps=steps, task=Task(id=str(task))), success=first > 0)


@pytest.mark.parametrize(("discount", "reward"), [(1.0, None), (0.5, None), (1.0, 2.0)])
def test_the_step_that_decides_gets_the_credit(tiny_recipe, discount, reward) -> None:
    """Half of them succeed: 1/2 before the first step, 1 or 0 from then on. A reward of 2 that all get is expected from
    the start."""
    dice = random.Random(0)
    records = [run(task, dice.choice((1.0, -1.0)), reward=reward) for task in range(80)]
    recipe = replace(
        tiny_recipe,
        objective="td",
        backbone="features",
        epochs=15,
        batch_pairs=8,
        learning_rate=0.01,
        ensemble=2,
        discount=discount,
    )
    _, model = CrossValidation(recipe, 0, torch.device("cpu"), no_report).train(records)
    good, bad = (record.scores[0] for record in score_records(model, [run(40, 1.0), run(40, -1.0)]))
    mean, spread = _returns(records, discount)
    share = sum(record.success for record in records) / len(records)
    worth = discount**2
    earned = 0.0 if reward is None else reward
    values = [spread * value + mean for value in (good.offset, *good.values)]
    assert values == pytest.approx([share * worth + earned, *[worth + earned] * 3], abs=0.15 * worth)
    values = [spread * value + mean for value in bad.values]
    assert values == pytest.approx([earned] * 3, abs=0.15 * worth)
    assert good.raw > bad.raw and max(good.step_rewards) == good.step_rewards[0]
    assert sum(good.step_rewards) == pytest.approx(good.raw - good.offset, abs=1e-5)


def reached(task: int, steps: int) -> OutcomeRecord:
    """A success after so many steps: the first shows the way that was taken."""
    own = task / 100
    rows = ((1.0, 0.0, 2.0 - steps, own), *[(0.0, 1.0, 0.0, own)] * (steps - 1))
    trajectory = Trajectory(
        steps=tuple(Step(source="agent", features=row) for row in rows), task=Task(id=str(task))
    )
    return OutcomeRecord(trajectory=trajectory, success=True)


def test_of_successes_alone_the_sooner_one_is_better(tiny_recipe) -> None:
    """With a discount of 1/2: 1/2 after two steps and 1/4 after three, from the first step on; before it their mean."""
    dice = random.Random(0)
    records = [reached(task, dice.choice((2, 3))) for task in range(80)]
    chosen = replace(tiny_recipe, objective="td", backbone="features", epochs=15, batch_pairs=8)
    chosen = replace(chosen, learning_rate=0.01, ensemble=2, discount=0.5)
    with pytest.raises(RewardError, match="set `discount` below 1 where some took fewer steps"):
        CrossValidation(replace(chosen, discount=1.0), 0, torch.device("cpu"), no_report).train(records)
    _, model = CrossValidation(chosen, 0, torch.device("cpu"), no_report).train(records)
    soon, late = (record.scores[0] for record in score_records(model, [reached(40, 2), reached(40, 3)]))
    mean, spread = _returns(records, 0.5)
    for scored, worth in ((soon, 1 / 2), (late, 1 / 4)):
        values = [spread * value + mean for value in (scored.offset, *scored.values)]
        assert values == pytest.approx([mean, *[worth] * (len(values) - 1)], abs=0.05)
    assert soon.raw > late.raw and soon.step_rewards[0] > 0 > late.step_rewards[0]


def _returns(records: list[OutcomeRecord], discount: float) -> tuple[float, float]:
    """The mean and the spread by which a model has returns, worked out from the records."""
    found = torch.tensor(
        [
            sum(discount**place * (step.reward or 0.0) for place, step in enumerate(record.trajectory.steps))
            + discount ** (len(record.trajectory.steps) - 1) * record.success
            for record in records
        ]
    )
    return float(found.mean()), float(found.std(correction=0))


def test_a_run_of_successes_alone_is_trained_and_evaluated(run_directory) -> None:
    def succeeded(task: int) -> OutcomeRecord:
        way = ("take the bridge", "arrive") if task % 2 else ("take the ferry", "wait", "arrive")
        steps = tuple(Step(source="agent", message=(Part(text=text),)) for text in way)
        return OutcomeRecord(trajectory=Trajectory(steps=steps, task=Task(id=str(task))), success=True)

    records = [succeeded(task) for task in range(60)]
    splits = {"train": records[:40], "validation": records[40:50], "test": records[50:]}
    recipe = parse_recipe({"objective": "td", "discount": 0.5, "backbone": "linear", "ensemble": 2})
    folder = run_directory(recipe=recipe, splits=splits)
    train(folder)
    model = load(folder / "model")
    soon, late = (model.score([model.render(succeeded(task).trajectory)])[0].raw for task in (51, 52))
    assert soon > late
