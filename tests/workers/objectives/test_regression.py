import math

import pytest
import torch

from workers.errors import RewardError
from workers.objectives import Example
from workers.objectives.regression import OBJECTIVE, place_on_scale, squared_error
from workers.schema import RatingRecord, ScoreRecord
from workers.schema.recipe import Recipe


def rating(trajectory, **fields):
    return RatingRecord(trajectory=trajectory, annotator="ann", **fields)


def score(trajectory, value, criterion="polite", scale=(1.0, 5.0), weight=1.0):
    return ScoreRecord(
        trajectory=trajectory,
        annotator="ann",
        criterion=criterion,
        value=value,
        scale=scale,
        criterion_weight=weight,
    )


def test_places_on_scales(make_trajectory):
    one = make_trajectory("good")
    assert place_on_scale(rating(one, rating=4.0, scale=(1.0, 5.0))) == 0.75
    assert [place_on_scale(rating(one, accept=said)) for said in (True, False)] == [1.0, 0.0]
    assert place_on_scale(score(one, -1.0, scale=(-2.0, 2.0))) == 0.25


def test_the_square():
    predicted = torch.tensor([[0.5, 0.75], [1.0, 0.0]])
    assert squared_error(predicted, torch.tensor([0.25, 1.0])).tolist() == [[0.0625, 0.25], [0.0, 1.0]]


def test_gradients_are_those_of_finite_differences():
    predicted = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(squared_error, (predicted, torch.rand(4, dtype=torch.float64)))


def make(recipe, records, **fields):
    return OBJECTIVE(recipe(**fields), [Example("regression", record, (0,)) for record in records]).double()


def test_a_rating_is_the_reward_up_to_scale_and_offset(make_trajectory, recipe, batch):
    record = rating(make_trajectory("good"), rating=5.0, scale=(1.0, 5.0))
    one = make(recipe, [record])
    got = one(batch("regression", [record], [(0.0, 2.0)]))
    assert float(got.detach()) == pytest.approx((2 * math.log(2) + 0.5 - 1) ** 2)


def test_scores_are_of_the_criterion_head_and_without_ratings_of_the_reward_too(
    make_trajectory, recipe, batch
):
    records = [score(make_trajectory("good"), 5.0), rating(make_trajectory("bad"), accept=False)]
    given = {"criteria": {"polite": [[0.5], [9.0]]}}
    both = make(recipe, records)(batch("regression", records, [(0.0, 2.0), (0.0, 1.0)], **given))
    assert both.squeeze(-1).tolist() == pytest.approx([0.25, (math.log(2) + 0.5) ** 2])
    alone = make(recipe, records[:1])(
        batch("regression", records[:1], [(0.0, 2.0)], criteria={"polite": [[0.5]]})
    )
    assert float(alone.detach()) == pytest.approx(0.25 + (2 * math.log(2) - 0.5) ** 2)


def test_the_criterion_of_the_recipe_is_the_reward(make_trajectory, recipe, batch):
    records = [score(make_trajectory("good"), 5.0), score(make_trajectory("good"), 1.0, "short")]
    refused = [OBJECTIVE.reject_reason(record, recipe(criterion="polite")) for record in records]
    assert refused == [None, "by the criterion 'short'"]
    one = make(recipe, records[:1], criterion="polite")
    assert float(one(batch("regression", records[:1], [(0.0, 0.0)])).detach()) == pytest.approx(0.25)


def test_a_criterion_where_more_is_worse_counts_from_the_top_of_its_scale(make_trajectory, recipe, batch):
    """Raw 2 is 2 log 2 + 0.5 = 1.886294 on the scale. Weights 1 and -3: relative to their mean, 0.5 and 1.5."""
    records = [
        score(make_trajectory("good"), 4.0),
        score(make_trajectory("good"), 2.0, "harmful", weight=-3.0),
    ]
    criteria = {
        "polite": [[0.75], [0.0]],
        "harmful": [[0.0], [0.25]],
    }  # heads are right: only the reward is left
    rewards = [(0.0, 2.0), (0.0, 2.0)]
    given = {"criteria": criteria}
    one = make(recipe, records)
    got = one(batch("regression", records, rewards, **given)).squeeze(-1).tolist()
    assert got == pytest.approx([0.5 * (1.886294 - 0.75) ** 2, 1.5 * (1.886294 - 0.75) ** 2], abs=1e-5)
    said = make(recipe, records, criteria_weights={"harmful": 1.0})  # of the recipe, before the record's
    got = said(batch("regression", records, rewards, **given)).squeeze(-1).tolist()
    assert got == pytest.approx([(1.886294 - 0.75) ** 2, (1.886294 - 0.25) ** 2], abs=1e-5)


def test_a_criterion_without_a_weight_is_neutral_or_named_as_assumed(make_trajectory, recipe, batch):
    unknown = score(make_trajectory("good"), 5.0, "odd", weight=None)
    records = [unknown, score(make_trajectory("good"), 5.0)]
    one = make(recipe, records)
    assert one.neutral == ["odd"]
    given = {"criteria": {"odd": [[0.5], [0.0]], "polite": [[0.0], [1.0]]}}
    got = one(batch("regression", records, [(0.0, 2.0), (0.0, 2.0)], **given)).squeeze(-1).tolist()
    assert got == pytest.approx([0.25, 0.886294**2], abs=1e-5)
    assert one.assumed == []
    alone = make(recipe, [unknown], objective="regression")  # as before there were weights: more is better
    assert (alone.assumed, alone.neutral) == (["odd"], [])
    given = {"criteria": {"odd": [[0.5]]}}
    got = alone(batch("regression", [unknown], [(0.0, 2.0)], **given)).squeeze(-1).tolist()
    assert got == pytest.approx([0.25 + 0.886294**2], abs=1e-5)
    assert make(recipe, [unknown], objective="joint").neutral == ["odd"]
    assert make(recipe, [unknown], criterion="odd").neutral == []
    assert make(recipe, [unknown, rating(make_trajectory("good"), accept=True)]).neutral == []


def test_weights_of_0_alone_are_refused(make_trajectory, recipe):
    records = [score(make_trajectory("good"), value, weight=0.0) for value in (1.0, 5.0)]
    with pytest.raises(RewardError, match="every criterion has the weight 0") as refused:
        make(recipe, records, objective="regression")
    assert refused.value.pointer == "/criteria_weights"
    assert make(recipe, records, objective="regression", criteria_weights={"polite": 2.0}).mean_weight == 2.0
    assert make(recipe, records, objective="regression", criterion="polite").assumed == []


def test_what_teaches_nothing(make_trajectory, recipe):
    flat = score(make_trajectory("good"), 1.0, scale=(1.0, 1.0))
    assert OBJECTIVE.reject_reason(flat, recipe()) == "on a scale without a range"
    same = [Example("regression", rating(make_trajectory("good"), accept=True), (0,)) for _ in range(3)]
    assert OBJECTIVE.validate_dataset(same, Recipe()) == "all 3 ratings and scores are the same"
