"""Imitation by a discriminator: numbers by hand, and the log ratio of densities that it finds."""

import math

import pytest
import torch
from msgspec.structs import replace

from workers.errors import RewardError
from workers.objectives import Example
from workers.objectives.imitation import OBJECTIVE, class_weights, discriminator_loss
from workers.schema import DemonstrationRecord, OutcomeRecord, Part, Step, Task, Trajectory
from workers.schema.conditions import mismatched_demonstrations
from workers.schema.recipe import Recipe, parse_recipe


def trajectory(count: int, **conditions: str) -> Trajectory:
    steps = tuple(Step(source="agent", message=(Part(text=f"go {number}"),)) for number in range(count))
    return Trajectory(steps=steps, task=Task(id="t"), conditions=conditions)


def demonstrated(count: int, *, demonstration: bool = True, **conditions: str) -> DemonstrationRecord:
    return DemonstrationRecord(
        trajectory=trajectory(count, **conditions), demonstration=demonstration, annotator="ann"
    )


def other(count: int) -> OutcomeRecord:
    return OutcomeRecord(trajectory=trajectory(count), success=True)


def test_by_hand(recipe, batch):
    """Three steps shown, one not: weights 4 / 6 and 4 / 2, over two steps of an example in the mean."""
    assert class_weights(3, 1) == (4 / 6, 2.0)
    given = batch(
        "imitation", [demonstrated(3), other(1)], [(9.0, 0.0, 1.0, 2.0), (9.0, -1.0)], aggregation="mean"
    )
    objective = OBJECTIVE(recipe(objective="imitation"), given.examples)
    softplus = lambda x: math.log1p(math.exp(x))  # noqa: E731
    wanted = [4 / 6 * sum(map(softplus, (0.0, -1.0, -2.0))) / 2, 2.0 * softplus(-1.0) / 2]
    assert objective(given).flatten().tolist() == pytest.approx(wanted)
    assert objective.validation_metrics(given)["accuracy"].tolist() == [0.0, 1.0, 1.0, 1.0]
    rewards = torch.randn(4, 2, dtype=torch.double, requires_grad=True)
    is_shown = torch.tensor([True, True, False, True])
    assert torch.autograd.gradcheck(lambda x: discriminator_loss(x, is_shown), rewards)


def test_the_reward_is_the_log_ratio_of_densities(recipe, batch):
    """A kind of step that is 3 of 4 shown ones and 1 of 8 others: log(3/4 / (1/8)), however many there are of each."""
    records = [demonstrated(4), other(8)]
    given = batch("imitation", records, [[0.0] * 5, [0.0] * 9], aggregation="mean")
    objective = OBJECTIVE(recipe(objective="imitation"), given.examples)
    kinds = torch.tensor([0, 1, 1, 1, 2, 0, 1, 2, 2, 2, 2, 2, 2, 2])  # of the rows; 0 before the first step
    table = torch.zeros(3, 1, dtype=torch.double, requires_grad=True)
    optimiser = torch.optim.LBFGS([table], max_iter=200, line_search_fn="strong_wolfe")

    def closure():
        optimiser.zero_grad()
        outputs = replace_values(given, table[kinds])
        loss = objective(outputs).sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    assert table[1:, 0].tolist() == pytest.approx(
        [math.log((3 / 4) / (1 / 8)), math.log((1 / 4) / (7 / 8))], abs=1e-3
    )


def replace_values(given, flat):
    import dataclasses

    outputs = dataclasses.replace(given.outputs, values=given.outputs.values.of(flat))
    return dataclasses.replace(given, outputs=outputs)


def test_a_demonstration_under_the_preference_of_another_one_is_none():
    records = [demonstrated(2, persona="careful"), demonstrated(3, persona="fast"), demonstrated(4), other(2)]
    found = mismatched_demonstrations(records)
    assert [(each.trajectory.conditions, each.demonstration) for each in found] == [
        ({"persona": "fast"}, False),
        ({"persona": "careful"}, False),
    ]
    assert [len(each.trajectory.steps) for each in found] == [2, 3]
    assert mismatched_demonstrations(records[:1]) == []
    assert mismatched_demonstrations([replace(records[0], weight=0.0), records[1]]) == []


def test_what_a_dataset_lacks():
    alone = Example("imitation", demonstrated(2), (0,))
    assert "nothing says what they are not" in OBJECTIVE.validate_dataset([alone], Recipe())
    assert "no trajectory is marked" in OBJECTIVE.validate_dataset(
        [Example("imitation", other(2), (0,))], Recipe()
    )
    marked = Example("imitation", demonstrated(2, demonstration=False), (0,))
    assert OBJECTIVE.validate_dataset([alone, marked], Recipe()) is None


def test_aggregation():
    assert parse_recipe({"objective": "imitation"}).aggregation == "mean"
    with pytest.raises(RewardError, match="use 'mean'"):
        parse_recipe({"objective": "imitation", "aggregation": "value"})
