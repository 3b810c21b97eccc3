import math

import pytest
import torch

from workers.objectives import Example
from workers.objectives.outcome import OBJECTIVE, outcome_loss
from workers.schema import OutcomeRecord
from workers.schema.recipe import Recipe


def test_the_loss_of_a_success_and_of_a_failure():
    rewards = torch.tensor([[2.0], [2.0], [0.0]])
    got = outcome_loss(rewards, torch.tensor([1.0, 0.0, 1.0])).squeeze(-1)
    assert got.tolist() == pytest.approx([0.126928, 2.126928, math.log(2)], abs=1e-6)


def test_gradients_are_those_of_finite_differences():
    rewards = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        outcome_loss, (rewards, torch.tensor([1.0, 0.0, 1.0, 1.0], dtype=torch.float64))
    )


def test_it_reads_the_reward_of_the_whole(make_trajectory, recipe, batch):
    records = [OutcomeRecord(trajectory=make_trajectory("good"), success=said) for said in (True, False)]
    given = batch("outcome", records, [(5.0, 1.0, 2.0), (5.0, 2.0)])
    one = OBJECTIVE(recipe(), given.examples)
    assert one(given).squeeze(-1).tolist() == pytest.approx([0.126928, 2.126928], abs=1e-6)
    assert one.validation_metrics(given)["accuracy"].tolist() == [1.0, 0.0]


def test_outcomes_that_are_all_alike(make_trajectory):
    failed = [Example("outcome", OutcomeRecord(trajectory=make_trajectory("bad"), success=False), (0,))] * 2
    assert OBJECTIVE.validate_dataset(failed, Recipe()).startswith("all 2 trajectories failed")
