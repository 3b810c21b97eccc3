import math

import numpy as np
import pytest
import torch
from scipy.special import expit

from workers.objectives import Example
from workers.objectives.ordinal import OBJECTIVE, cumulative_link_loss, level_count, level_of
from workers.schema import RatingRecord, ScoreRecord


def rating(trajectory, value, scale=(1.0, 5.0)):
    return RatingRecord(trajectory=trajectory, annotator="ann", rating=value, scale=scale)


def score(trajectory, value, criterion="polite"):
    return ScoreRecord(
        trajectory=trajectory, annotator="ann", criterion=criterion, value=value, scale=(1.0, 5.0)
    )


def make(recipe, records, **fields):
    return OBJECTIVE(recipe(**fields), [Example("ordinal", record, (0,)) for record in records]).double()


def test_the_loss_is_minus_the_log_of_the_probability_of_the_mark():
    thresholds = torch.tensor([[-1.0, 0.5, 2.0]], dtype=torch.double).expand(4, -1)
    rewards, level = torch.full((4, 1), 0.7, dtype=torch.double), torch.arange(4)
    cumulative = np.array([0.0, *expit(np.array([-1.0, 0.5, 2.0]) - 0.7), 1.0])
    wanted = -np.log(np.diff(cumulative))
    assert cumulative_link_loss(rewards, level, thresholds).squeeze(1).tolist() == pytest.approx(
        wanted.tolist()
    )


def test_a_scale_of_two_is_logistic_regression():
    thresholds, rewards = (
        torch.zeros(2, 1, dtype=torch.double),
        torch.tensor([[1.5], [1.5]], dtype=torch.double),
    )
    found = cumulative_link_loss(rewards, torch.tensor([0, 1]), thresholds).squeeze(1).tolist()
    assert found == pytest.approx([math.log1p(math.exp(1.5)), math.log1p(math.exp(-1.5))])


def test_far_from_the_thresholds_nothing_overflows():
    thresholds = torch.tensor([[-1.0, 1.0]], dtype=torch.double).expand(3, -1)
    rewards = torch.tensor([[800.0], [0.0], [-800.0]], dtype=torch.double, requires_grad=True)
    loss = cumulative_link_loss(rewards, torch.tensor([1, 1, 1]), thresholds)
    loss.sum().backward()
    assert loss.isfinite().all()
    assert rewards.grad.squeeze(1).tolist() == pytest.approx([1.0, 0.0, -1.0])


def test_gradients_are_those_of_finite_differences():
    rewards = torch.randn(5, 2, dtype=torch.double, requires_grad=True)
    thresholds = torch.tensor([[-1.0, 0.2, 1.3]], dtype=torch.double).repeat(5, 1).requires_grad_()
    level = torch.tensor([0, 1, 2, 3, 2])
    assert torch.autograd.gradcheck(cumulative_link_loss, (rewards, level, thresholds))


def test_the_levels_of_a_scale():
    assert level_count((1.0, 5.0), [1.0, 4.0]) == 5
    assert [level_of(value, (1.0, 5.0), 5) for value in (1.0, 3.0, 5.0)] == [0, 2, 4]
    assert level_count((0.0, 1.0), [0.25]) == 20
    assert [level_of(value, (0.0, 1.0), 20) for value in (0.0, 0.5, 1.0)] == [0, 10, 19]
    assert level_count((0.0, 100.0), [3.0]) == 20


def test_thresholds_ascend_and_are_of_each_scale(make_trajectory, recipe, batch):
    records = [
        rating(make_trajectory("good"), 4.0),
        rating(make_trajectory("bad"), 1.0, (1.0, 3.0)),
        RatingRecord(trajectory=make_trajectory("good"), annotator="ann", accept=True),
    ]
    made = make(recipe, records)
    sizes = {scale: len(made.thresholds(scale)) for scale in ((1.0, 5.0), (1.0, 3.0), (0.0, 1.0))}
    assert sizes == {(1.0, 5.0): 4, (1.0, 3.0): 2, (0.0, 1.0): 1}
    assert (made.thresholds((1.0, 5.0)).diff() > 0).all()
    loss = made(batch("ordinal", records, [(0.0, 0.3), (0.0, -0.2), (0.0, 1.0)]))
    assert loss.shape == (3, 1)
    loss.sum().backward()
    assert all(parameter.grad is not None for parameter in made.parameters() if parameter.numel())


def test_a_scale_that_training_never_had_is_not_measured(make_trajectory, recipe, batch):
    known, other = rating(make_trajectory("good"), 4.0), rating(make_trajectory("bad"), 7.0, (1.0, 10.0))
    made = make(recipe, [known])
    found = batch("ordinal", [known, other], [(0.0, 0.3), (0.0, -0.2)])
    assert made.measured(found) == [0]
    assert len(made.validation_metrics(found)["loss"]) == 1


@pytest.mark.parametrize(
    ("criterion", "value", "reason"),
    [
        (None, "rating", None),
        ("polite", "rating", "without the criterion"),
        (None, "score", "by a criterion, where the recipe names none"),
        ("polite", "score", None),
        ("short", "score", "by the criterion 'polite'"),
    ],
)
def test_what_is_learnt_from(make_trajectory, recipe, criterion, value, reason):
    trajectory = make_trajectory("good")
    record = rating(trajectory, 4.0) if value == "rating" else score(trajectory, 4.0)
    assert OBJECTIVE.reject_reason(record, recipe(criterion=criterion)) == reason


# McCullagh and Nelder (1989), section 5.6: how often each of four cheeses got each of nine marks.
CHEESES = {
    "A": (0, 0, 1, 7, 8, 8, 19, 8, 1),
    "B": (6, 9, 12, 11, 7, 6, 1, 0, 0),
    "C": (1, 1, 6, 8, 23, 7, 5, 1, 0),
    "D": (0, 0, 0, 1, 3, 7, 14, 16, 11),
}
# The estimates that SAS/STAT publishes of them (PROC LOGISTIC, "Ordinal Logistic Regression"), D being 0.
PUBLISHED = {"A": -1.6128, "B": -4.9646, "C": -3.3227}
THRESHOLDS = (-7.0802, -6.0250, -4.9254, -3.8568, -2.5206, -1.5685, -0.0669, 1.4930)


def test_the_fit_of_a_published_example(recipe, make_trajectory):
    marks = [
        (place, mark)
        for place, counts in enumerate(CHEESES.values())
        for mark, count in enumerate(counts, start=1)
        for _ in range(count)
    ]
    made = make(recipe, [rating(make_trajectory("good"), float(mark), (1.0, 9.0)) for _, mark in marks])
    worth = torch.zeros(3, dtype=torch.double, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [worth, *made.parameters()],
        max_iter=500,
        tolerance_grad=1e-10,
        tolerance_change=1e-14,
        line_search_fn="strong_wolfe",
    )
    cheese, level = torch.tensor([place for place, _ in marks]), torch.tensor([mark - 1 for _, mark in marks])

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        rewards = torch.cat([worth, worth.new_zeros(1)])[cheese].unsqueeze(1)
        thresholds = made.thresholds((1.0, 9.0)).expand(len(marks), -1)
        value = cumulative_link_loss(rewards, level, thresholds).sum()
        value.backward()
        return value

    optimiser.step(loss)
    assert worth.tolist() == pytest.approx([*PUBLISHED.values()], abs=2e-3)
    assert made.thresholds((1.0, 9.0)).tolist() == pytest.approx(THRESHOLDS, abs=2e-3)
