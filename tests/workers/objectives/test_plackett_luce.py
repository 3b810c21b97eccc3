"""Numbers worked out by hand, with e^r = 1, 2, 3: every order's probability is a product of fractions."""

import math
from itertools import permutations

import pytest
import torch

from workers.objectives.bradley_terry import preference_loss
from workers.objectives.plackett_luce import OBJECTIVE, ranking_loss
from workers.schema import RankingRecord


def rewards(*weights):
    return torch.tensor([[math.log(weight)] for weight in weights], dtype=torch.float64)


def probability(given, ranks):
    return math.exp(-float(ranking_loss(given, ranks)))


def test_a_strict_ranking():
    assert probability(rewards(1, 2, 3), [3, 2, 1]) == pytest.approx(3 / 6 * 2 / 3)
    assert probability(rewards(1, 2, 3), [1, 2, 3]) == pytest.approx(1 / 6 * 2 / 5)


def test_all_orders_together_are_certain():
    given = rewards(1, 2, 3, 0.5)
    assert sum(probability(given, list(ranks)) for ranks in permutations([1, 2, 3, 4])) == pytest.approx(1)


def test_two_items_are_bradley_terry():
    given = rewards(1, 3)
    pair = preference_loss(given[1], given[0], *(torch.tensor(float(x)) for x in (0, 1, 0)), 0.0)
    torch.testing.assert_close(ranking_loss(given, [2, 1]), pair)


def test_a_tie_is_both_orders():
    given = rewards(1, 2, 3)
    both = probability(given, [1, 2, 3]) + probability(given, [2, 1, 3])
    assert probability(given, [1, 1, 2]) == pytest.approx(both)
    assert probability(given, [1, 1, 2]) == pytest.approx(1 / 6 * 2 / 5 + 2 / 6 * 1 / 4)


def test_a_block_of_three_before_two():
    given = rewards(1, 2, 3, 0.5, 4)
    ends = [(4, 5), (5, 4)]
    every = sum(probability(given, [*first, *end]) for first in permutations([1, 2, 3]) for end in ends)
    assert probability(given, [1, 1, 1, 2, 2]) == pytest.approx(every)


def test_the_last_block_says_nothing_of_its_inside():
    given = rewards(1, 2, 3)
    assert probability(given, [1, 2, 2]) == pytest.approx(1 / 6)


def test_gradients_are_those_of_finite_differences():
    given = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda r: ranking_loss(r, [2, 1, 1, 3, 3]), (given,))


@pytest.mark.parametrize("far", [80.0, -80.0])
def test_far_apart_rewards_stay_finite(far):
    given = torch.tensor([[far], [0.0], [far]], requires_grad=True)
    loss = ranking_loss(given, [1, 1, 2]).sum()
    loss.backward()
    assert loss.isfinite() and given.grad.isfinite().all()


def ranking(make_trajectory, ranks, **fields):
    trajectories = tuple(make_trajectory(f"good {place}") for place in range(len(ranks)))
    return RankingRecord(trajectories=trajectories, ranks=tuple(ranks), annotator="ann", **fields)


@pytest.mark.parametrize(
    ("ranks", "said"),
    [([1, 1], "that call all equal"), ([1] * 11 + [2], "with more than 10 tied"), ([1, 2, 2], None)],
)
def test_what_teaches_nothing(make_trajectory, recipe, ranks, said):
    assert OBJECTIVE.reject_reason(ranking(make_trajectory, ranks), recipe()) == said


def test_a_ranking_counts_as_much_as_a_pair_for_each_place(make_trajectory, recipe, batch):
    record = ranking(make_trajectory, [3, 2, 1])
    given = batch("plackett_luce", [record], [(0.0, math.log(weight)) for weight in (1, 2, 3)])
    one = OBJECTIVE(recipe(), given.examples)
    assert one(given).tolist()[0] == pytest.approx([-math.log(1 / 3) / 2])
    assert one.validation_metrics(given)["accuracy"].tolist() == [1.0]
