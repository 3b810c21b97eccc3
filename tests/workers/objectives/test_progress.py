import pytest
import torch

from workers.objectives.progress import OBJECTIVE, attribution_loss
from workers.schema import OutcomeRecord
from workers.schema.recipe import Recipe


def test_the_square_of_what_is_missing():
    got = attribution_loss(torch.tensor([[0.75], [2.0]]), torch.tensor([1.0, 0.0]))
    assert got.squeeze(-1).tolist() == [0.0625, 4.0]


def test_gradients_are_those_of_finite_differences():
    whole = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(attribution_loss, (whole, torch.rand(3, dtype=torch.float64)))


@pytest.mark.parametrize(
    ("aggregation", "sums"), [("sum", (0.75, 2.0)), ("value", (0.25, 1.5)), ("mean", (0.75, 2.0))]
)
def test_what_is_summed_are_the_step_rewards(make_trajectory, recipe, batch, aggregation, sums):
    """sum: 0.25 + 0.5 and 2; value: V_T - V_0 = 0.5 - 0.25 and 2 - 0.5; mean: its step rewards are the values."""
    one, two = make_trajectory("good"), make_trajectory("bad")
    records = [
        OutcomeRecord(trajectory=one, success=True),
        OutcomeRecord(trajectory=two, success=False, reward=0.5),
    ]
    given = batch("progress", records, [(0.25, 0.25, 0.5), (0.5, 2.0)], aggregation=aggregation)
    got = OBJECTIVE(recipe(), given.examples)(given).squeeze(-1)
    assert got.tolist() == pytest.approx([(sums[0] - 1) ** 2, (sums[1] - 0.5) ** 2])


def test_outcomes_that_are_all_alike(make_trajectory, recipe, batch):
    records = [OutcomeRecord(trajectory=make_trajectory("bad"), success=False)]
    given = batch("progress", records, [(0.0, 1.0)])
    assert OBJECTIVE.validate_dataset(given.examples, Recipe()).startswith("all 1 trajectories failed")
