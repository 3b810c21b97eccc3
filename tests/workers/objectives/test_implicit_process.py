"""Implicit process rewards against numbers worked out by hand."""

import math

import pytest
import torch

from workers.objectives import collect
from workers.objectives.implicit_process import ImplicitProcessObjective, trajectory_dpo_loss
from workers.schema import OutcomeRecord, Part, PreferenceRecord, Step, Task, Trajectory
from workers.schema.recipe import Recipe
from workers.text import StepTextRenderer

ONE = Trajectory(steps=(Step(source="agent", message=(Part(text="x"),)),), task=Task(id="t"))
TWO = Trajectory(steps=(Step(source="agent", message=(Part(text="y"),)),), task=Task(id="t"))


def preference(choice: str = "a", **fields) -> PreferenceRecord:
    return PreferenceRecord(a=ONE, b=TWO, choice=choice, **({"annotator": "ann"} | fields))


def outcome(*, success: bool) -> OutcomeRecord:
    return OutcomeRecord(trajectory=ONE, success=success)


def log_sigmoid(value: float) -> float:
    return -math.log1p(math.exp(-value))


def losses(batch, recipe, records, values) -> list[float]:
    made = batch("implicit_process", records, values, aggregation="sum")
    return ImplicitProcessObjective(recipe, made.examples)(made).squeeze(1).tolist()


def test_preferences_and_outcomes_in_one_batch(batch, recipe) -> None:
    """Sums of steps: 1.5 and 0.25 of the pairs, then 2 and -1."""
    records = [preference("a"), preference("b"), outcome(success=True), outcome(success=False)]
    pair = [[0.0, 1.0, 0.5], [0.0, 0.25]]
    found = losses(batch, recipe(), records, [*pair, *pair, [0.0, 2.0], [0.0, -1.0]])
    wanted = [-log_sigmoid(1.25), -log_sigmoid(-1.25), -log_sigmoid(2.0), -log_sigmoid(1.0)]
    assert found == pytest.approx(wanted, abs=1e-12)


def test_slips_and_reliabilities(batch, recipe) -> None:
    """q s(d) + (1 - q) s(-d), and never below one half; a verifier makes no slips."""
    pair = [[0.0, 1.0], [0.0, 0.0]]
    right, wrong = (1 / (1 + math.exp(-d)) for d in (1.0, -1.0))
    doubted = [preference(strict_reliability=q) for q in (0.75, 0.1)]
    found = losses(batch, recipe(annotators="given"), doubted, [*pair, *pair])
    wanted = [-math.log(0.75 * right + 0.25 * wrong), -math.log(0.5)]
    assert found == pytest.approx(wanted, abs=1e-12)
    assert losses(batch, recipe(annotators="equal"), doubted[:1], pair) == pytest.approx([-math.log(right)])
    slips = losses(
        batch, recipe(label_smoothing=0.1), [preference(), outcome(success=True)], [*pair, [0.0, 1.0]]
    )
    wanted = [-0.9 * math.log(right) - 0.1 * math.log(wrong), -math.log(right)]
    assert slips == pytest.approx(wanted, abs=1e-12)


def test_gradients() -> None:
    torch.manual_seed(0)
    chosen, rejected = torch.randn(2, 5, 1, dtype=torch.double, requires_grad=True).unbind()
    q = torch.full_like(chosen, 0.8)
    assert torch.autograd.gradcheck(
        lambda a, b: trajectory_dpo_loss(a, b, q, 0.1),
        (chosen.detach().requires_grad_(), rejected.detach().requires_grad_()),
    )


def test_a_batch_passes_gradients_to_the_rewards_of_both_sides(batch, recipe) -> None:
    """d/da -log s(a - b) = -s(b - a); of a failure d/dr -log s(-r) = s(r)."""
    made = batch(
        "implicit_process",
        [preference("b"), outcome(success=False)],
        [[0.0, 0.5], [0.0, 0.0], [0.0, 1.0]],
        aggregation="sum",
    )
    ImplicitProcessObjective(recipe(), made.examples)(made).sum().backward()
    slope = made.outputs.values.flat.grad.squeeze(1)[[1, 3, 5]].tolist()
    s = 1 / (1 + math.exp(-0.5))
    assert slope == pytest.approx([s, -s, 1 / (1 + math.exp(-1))], abs=1e-12)


def test_validation_measures_both(batch, recipe) -> None:
    records = [preference("a"), preference("b"), outcome(success=False)]
    values = [[0.0, 1.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    made = batch("implicit_process", records, values, aggregation="sum")
    found = ImplicitProcessObjective(recipe(label_smoothing=0.2), made.examples).validation_metrics(made)
    assert found["accuracy"].tolist() == [1.0, 0.0, 0.5]
    wanted = [-log_sigmoid(1.0), -log_sigmoid(-1.0), math.log(2)]
    assert found["loss"].tolist() == pytest.approx(wanted, abs=1e-12)


def test_what_is_left_out_and_what_teaches_nothing(recipe) -> None:
    chosen = recipe(objective="implicit_process", criterion="tone")
    records = [preference(), preference(criterion="tone"), preference("tie", criterion="tone")]
    found = collect([*records, outcome(success=True)], StepTextRenderer(), chosen)
    assert found.skipped == {"without a criterion": 1, "that name no better trajectory": 1}
    assert len(found) == 2
    assert ImplicitProcessObjective.validate_dataset(found.items, Recipe()) is None
    assert "all 1 trajectories succeeded" in ImplicitProcessObjective.validate_dataset(
        found.items[1:], Recipe()
    )
