"""SMORe's dual: numbers by hand, gradients, and the fixed points that its formula has."""

from itertools import pairwise
from typing import Any

import pytest
import torch

from workers.errors import RewardError
from workers.objectives import Example
from workers.objectives.smore import OBJECTIVE, score_losses
from workers.schema import OutcomeRecord, Step, Task, Trajectory
from workers.schema.recipe import parse_recipe
from workers.schema.recipe_keys import parse_new_recipe


def record(steps: int, *, success: bool, goal: str = "[1.0]") -> OutcomeRecord:
    rows = tuple(Step(source="agent", features=(0.0,)) for _ in range(steps))
    conditions = {"goal": goal} if goal else {}
    return OutcomeRecord(
        trajectory=Trajectory(steps=rows, task=Task(id="t"), conditions=conditions), success=success
    )


class TestScoreLosses:
    def test_by_hand(self) -> None:
        """x = 3 - 1 = 2 and -1 - 1 = -2, gamma 0.9, expectile 0.75: S / 10; x + x^2 / 4; 1.5 and 0.5 times x^2 / 4."""
        scores, following = torch.tensor([1.0, 1.0]), torch.tensor([3.0, -1.0])
        losses = score_losses(scores, following, 0.9, 0.75)
        assert losses.start.tolist() == pytest.approx([0.1, 0.1])
        assert losses.goal.tolist() == [3.0, -1.0]
        assert losses.data.tolist() == [1.5, 0.5]

    def test_are_the_conjugate_of_chi_squared(self) -> None:
        """f(t) = (t - 1)^2: f*(x) = sup_t t x - f(t), on a fine grid."""
        x = torch.linspace(-1.9, 3, 21, dtype=torch.float64)
        grid = torch.linspace(-5, 10, 30_001, dtype=torch.float64)
        conjugate = (grid * x.unsqueeze(1) - (grid - 1).square()).amax(1)
        losses = score_losses(torch.zeros_like(x), x, 0.9, 0.5)
        assert losses.goal.tolist() == pytest.approx(conjugate.tolist(), abs=1e-6)
        assert (losses.goal - x).tolist() == pytest.approx(losses.data.tolist())

    @pytest.mark.parametrize("expectile", [0.5, 0.9])
    def test_gradients_are_those_of_finite_differences(self, expectile: float) -> None:
        scores = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
        following = torch.randn(4, 2, dtype=torch.float64)

        def total(given: torch.Tensor) -> torch.Tensor:
            losses = score_losses(given, following, 0.9, expectile)
            return losses.start + 2 * losses.goal + 3 * losses.data

        assert torch.autograd.gradcheck(total, (scores,))


class TestLoss:
    def test_by_hand(self, recipe: Any, batch: Any) -> None:
        """beta = 1/4, gamma = 1/2, expectile 1/2; a success with values 0, 1, 2 and a failure with 4, 6 of 1.5 steps
        on average. The success: starts (0 + 1 + 2) / 2 = 3/2; data x = 1/2, 0, -2: 1/16 + 0 + 1 = 17/16; its goal
        -2 + 1 = -1, of half the examples. The failure: starts 5; data x = 3 - 4 = -1: 1/4, and nothing of its last.
        """
        given = batch("smore", [record(2, success=True), record(1, success=False)], [(0, 1, 2), (4, 6)])
        chosen = recipe(objective="smore", mixture=0.25, discount=0.5, expectile=0.5)
        objective = OBJECTIVE(chosen, given.examples)
        loss = objective(given).flatten().tolist()
        success = (0.25 * 1.5 + 0.75 * 17 / 16) / 1.5 + 0.25 * -1 / 0.5
        failure = (0.25 * 5 + 0.75 * 0.25) / 1.5
        assert loss == pytest.approx([success, failure])

    def test_the_next_score_is_held(self, recipe: Any, batch: Any) -> None:
        """The gradient at a value comes from its own terms: of the failure's last one from the start alone."""
        given = batch("smore", [record(1, success=False)], [(4.0, 6.0)])
        chosen = recipe(objective="smore", mixture=0.25, discount=0.5, expectile=0.5)
        OBJECTIVE(chosen, given.examples)(given).sum().backward()
        flat = given.outputs.values.flat.grad.flatten().tolist()
        assert flat == pytest.approx([0.25 * 0.5 + 0.75 * 0.5, 0.25 * 0.5])

    def test_scores_of_a_chain_fall_with_the_distance_to_the_goal(self, recipe: Any, batch: Any) -> None:
        """Four steps to the goal. At the minimum the last value has (1 - gamma) beta + beta (S / 2 - 1) N + (1 - beta)
        S / 2 = 0 with N steps for one goal, and each one before it gamma times the next less 2 beta (1 - gamma) /
        (1 - beta)."""
        chosen = recipe(objective="smore", mixture=0.5, discount=0.9, expectile=0.5)
        values = torch.zeros(5, 1, dtype=torch.float64, requires_grad=True)
        given = batch("smore", [record(4, success=True)], [tuple([0.0] * 5)])
        objective = OBJECTIVE(chosen, given.examples)
        optimiser = torch.optim.SGD([values], lr=0.5)
        for _ in range(2000):
            outputs = given.outputs
            changed = type(outputs)(**{name: getattr(outputs, name) for name in outputs.__slots__})
            object.__setattr__(changed, "values", outputs.values.of(values))
            loss = objective(type(given)(given.examples, changed, given.output_row, given.rendered)).sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        found = values.detach().flatten().tolist()
        assert found[-1] == pytest.approx((4 - 0.1) / (4 / 2 + 1 / 2), abs=1e-6)
        for value, following in pairwise(found):
            assert value == pytest.approx(0.9 * following - 2 * 0.1, abs=1e-6)


def test_only_records_with_a_goal_are_read(recipe: Any) -> None:
    chosen = recipe(objective="smore")
    assert OBJECTIVE.reject_reason(record(1, success=True), chosen) is None
    assert OBJECTIVE.reject_reason(record(1, success=True, goal=""), chosen) == "without a goal"
    failed = [Example("smore", record(1, success=False), (0,))]
    assert "no trajectory reaches its goal" in str(OBJECTIVE.validate_dataset(failed, chosen))
    assert OBJECTIVE.validate_dataset([Example("smore", record(1, success=True), (0,))], chosen) is None


def test_its_recipe_reads_goals() -> None:
    found = parse_recipe({"objective": "smore", "backbone": "features"})
    assert (found.conditioned, found.hindsight, found.aggregation) == (("goal",), 2, "value")
    parse_new_recipe({"objective": "smore", "backbone": "features", "mixture": 0.3, "expectile": 0.8})
    for values, pointer in (
        ({"conditioned": []}, "/conditioned"),
        ({"backbone": "linear"}, "/backbone"),
        ({"search": ["frozen"]}, "/search"),
        ({"aggregation": "sum"}, "/aggregation"),
    ):
        with pytest.raises(RewardError) as caught:
            parse_recipe({"objective": "smore"} | values)
        assert caught.value.pointer == pointer
    with pytest.raises(RewardError):
        parse_new_recipe({"objective": "td", "mixture": 0.3})
