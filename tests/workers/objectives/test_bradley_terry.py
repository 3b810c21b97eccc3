"""Numbers worked out by hand: s(x) = 1 / (1 + e^-x); s(1) = 0.731059, s(2) = 0.880797, s(3) = 0.952574."""

import math

import pytest
import torch

from workers.objectives import BradleyTerry, PairTensors
from workers.objectives.bradley_terry import below_loss, preference_loss, tie_loss


def number(value):
    return torch.tensor(float(value), dtype=torch.float64)


def loss(a, b, *, margin=0, reliability=1, tie=0, smoothing=0.0):
    return float(
        preference_loss(number(a), number(b), number(margin), number(reliability), number(tie), smoothing)
    )


def test_plain():
    assert loss(2, 0) == pytest.approx(-math.log(0.880797), abs=1e-6)
    assert loss(0, 2) == pytest.approx(2 - math.log(0.880797), abs=1e-6)
    assert loss(1, 1) == pytest.approx(math.log(2))


def test_a_margin_and_a_tie_threshold_are_taken_from_the_difference():
    assert loss(3, 0, margin=1) == pytest.approx(-math.log(0.880797), abs=1e-6)
    assert loss(3, 0, tie=0.5, margin=1.5) == pytest.approx(-math.log(0.731059), abs=1e-6)


def test_smoothing_mixes_in_the_flipped_loss():
    assert loss(2, 0, smoothing=0.1) == pytest.approx(0.9 * 0.126928 + 0.1 * 2.126928, abs=1e-6)


def test_an_unreliable_annotator_says_the_other_one_now_and_then():
    assert loss(2, 0, reliability=0.8) == pytest.approx(-math.log(0.8 * 0.880797 + 0.2 * 0.119203), abs=1e-6)
    assert loss(5, 0, reliability=0.5) == pytest.approx(math.log(2), abs=1e-6)


def test_ties_are_rao_kupper():
    # d = 1, eta = 1: P(a) = s(0) = 1/2, P(b) = s(-2) = 0.119203, P(tie) = 1 - both = 0.380797
    tie = float(tie_loss(number(1), number(0), number(1)))
    assert tie == pytest.approx(-math.log(0.380797), abs=1e-6)
    assert math.exp(-tie) + math.exp(-loss(1, 0, tie=1)) + math.exp(-loss(0, 1, tie=1)) == pytest.approx(1)


def test_both_bad_is_below_the_threshold():
    assert float(below_loss(number(-1), number(0))) == pytest.approx(-math.log(0.731059), abs=1e-6)


def objective(**fields):
    values = {
        "has_ties": False,
        "has_both_bad": False,
        "annotators": 1,
        "learn": False,
        "smoothing": 0.0,
        "centring": 0.0,
    }
    return BradleyTerry(**values | fields)


def pairs(*choices, margin=0.0):
    count = len(choices)
    return PairTensors(
        torch.tensor(choices),
        torch.full((count,), margin),
        torch.ones(count),
        torch.zeros(count, dtype=torch.long),
    )


def test_b_chosen_is_a_chosen_the_other_way_round():
    a, b = torch.tensor([[2.0, 0.5]]), torch.tensor([[0.0, 1.0]])
    made = objective()
    torch.testing.assert_close(made(a, b, pairs(0)), made(b, a, pairs(1)))


def test_each_choice_has_its_loss():
    a, b = torch.tensor([[1.0], [0.0], [1.0], [-1.0]]), torch.zeros(4, 1)
    made = objective(has_ties=True, has_both_bad=True)
    with torch.no_grad():
        made.tie.fill_(math.log(math.e - 1))  # softplus of it is 1
        got = made(a, b, pairs(0, 1, 2, 3)).squeeze(-1)
    above_1, above_0 = -math.log(0.731059), math.log(2)
    expected = [
        -math.log(0.5) + above_1,  # s(1 - 1), and a point at 1 above 0
        -math.log(0.268941) + above_0,  # s(0 - 1), and the chosen b at 0
        -math.log(0.380797),
        -math.log(0.731059) + math.log(2),
    ]
    torch.testing.assert_close(got, torch.tensor(expected), atol=1e-5, rtol=0)


def test_centring_adds_the_square_of_the_sum():
    a, b = torch.tensor([[2.0]]), torch.tensor([[1.0]])
    extra = objective(centring=0.1)(a, b, pairs(0)) - objective()(a, b, pairs(0))
    assert float(extra) == pytest.approx(0.9)


def test_learnt_reliability_falls_for_who_chooses_against_the_rewards():
    made = objective(learn=True, annotators=2)
    tensors = PairTensors(torch.tensor([0, 1]), torch.zeros(2), torch.ones(2), torch.tensor([0, 1]))
    made(torch.full((2, 1), 3.0), torch.zeros(2, 1), tensors).sum().backward()
    good, bad = made.annotator.grad
    assert good < 0 < bad  # descent raises the first and lowers the second


@pytest.mark.parametrize("far", [60.0, -60.0])
def test_far_apart_rewards_stay_finite(far):
    a, b = torch.tensor([[far]], requires_grad=True), torch.zeros(1, 1)
    value = objective(learn=True)(a, b, pairs(0)).sum()
    value.backward()
    assert value.isfinite() and a.grad.isfinite().all()
