"""Numbers worked out by hand: s(x) = 1 / (1 + e^-x); s(1) = 0.731059, s(2) = 0.880797, s(3) = 0.952574."""

import math

import pytest
import torch

from workers.objectives import Example
from workers.objectives.bradley_terry import (
    BradleyTerry,
    below_loss,
    davidson_log_probabilities,
    preference_loss,
    reliability_prior_loss,
    tie_loss,
)
from workers.schema.recipe import Recipe


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


@pytest.fixture
def made(recipe, make_preference):
    """make(*choices, ...): the objective of such comparisons, and their records."""

    def make(*choices, **fields):
        records = [make_preference(2 * place, choice=choice) for place, choice in enumerate(choices)]
        examples = [Example("bradley_terry", record, (0, 1)) for record in records]
        return BradleyTerry(recipe(**fields), examples).double(), records

    return make


def values(*pairs):
    """Rewards a, b of every pair, as trajectories of one step."""
    return [(0.0, reward) for pair in pairs for reward in pair]


def test_b_chosen_is_a_chosen_the_other_way_round(made, batch):
    one, records = made("a")
    other, mirrored = made("b")
    torch.testing.assert_close(
        one(batch("bradley_terry", records, values((2.0, 0.5)))),
        other(batch("bradley_terry", mirrored, values((0.5, 2.0)))),
    )


def test_each_choice_has_its_loss(made, batch):
    one, records = made("a", "b", "tie", "both_bad")
    with torch.no_grad():
        one.tie.fill_(math.log(math.e - 1))  # softplus of it is 1
        given = values((1.0, 0.0), (0.0, 0.0), (1.0, 0.0), (-1.0, 0.0))
        got = one(batch("bradley_terry", records, given)).squeeze(-1)
    above_1, above_0 = -math.log(0.731059), math.log(2)
    expected = [
        -math.log(0.5) + above_1,  # s(1 - 1), and a point at 1 above 0
        -math.log(0.268941) + above_0,  # s(0 - 1), and the chosen b at 0
        -math.log(0.380797),
        -math.log(0.731059) + math.log(2),
    ]
    torch.testing.assert_close(got, torch.tensor(expected, dtype=torch.float64), atol=1e-5, rtol=0)


def test_the_margin_is_that_of_the_strength(made, batch, make_preference):
    one, _ = made("a", margins=(0.0, 1.0, 2.0))
    records = [make_preference(0, choice="a", strength=strength) for strength in (1, 2, 3)]
    got = one(batch("bradley_terry", records, values((3.0, 0.0), (3.0, 0.0), (3.0, 0.0)))).squeeze(-1)
    assert got.tolist() == pytest.approx([math.log1p(math.exp(-d)) for d in (3, 2, 1)])


@pytest.mark.parametrize("ties", ["rao_kupper", "davidson"])
def test_the_magnitude_multiplies_the_loss_of_a_strict_choice(
    made, batch, make_preference, ties: str
) -> None:
    """Scaled Bradley-Terry: m (-log s(d)), with d = 1 and -log s(1) = 0.3132617; m = 1, 2, 3. A tie has no strength."""
    objective, _ = made("a", ties=ties, strength_weights=(1.0, 2.0, 3.0))
    records = [make_preference(0, choice="a", strength=strength) for strength in (1, 2, 3)]
    given = values((1.0, 0.0), (1.0, 0.0), (1.0, 0.0))
    found = objective(batch("bradley_terry", records, given)).squeeze(-1)
    assert found.tolist() == pytest.approx([0.3132617, 0.6265234, 0.9397851], abs=1e-6)
    with_ties, _ = made("a", "tie", ties=ties, strength_weights=(1.0, 2.0, 3.0))
    plain, _ = made("a", "tie", ties=ties)
    mixed = [make_preference(0, choice=choice, strength=3) for choice in ("b", "tie")]
    rewards = values((1.0, 0.0), (1.0, 0.0))
    scaled = with_ties(batch("bradley_terry", mixed, rewards)).squeeze(-1)
    unscaled = plain(batch("bradley_terry", mixed, rewards)).squeeze(-1)
    assert (scaled / unscaled).tolist() == pytest.approx([3.0, 1.0])


def test_a_margin_and_a_magnitude_by_davidson(made, batch, make_preference) -> None:
    """m (-log s(d - margin)) with m = 3, d = 2, margin = 0.5: 3 * 0.2014133; nothing was a tie, so nu is 0."""
    objective, _ = made("a", ties="davidson", margins=(0.0, 0.25, 0.5), strength_weights=(1.0, 2.0, 3.0))
    strong = [make_preference(0, choice="b", strength=3)]
    found = objective(batch("bradley_terry", strong, values((0.0, 2.0)))).squeeze(-1)
    assert found.tolist() == pytest.approx([3 * 0.2014133], abs=1e-6)


def test_strengths_that_nobody_gave_are_known_to_have_no_effect(made, make_preference) -> None:
    weak, strong = (
        [Example("bradley_terry", make_preference(0, choice="a", strength=strength), (0, 1))]
        for strength in (1, 2)
    )
    scaled, _ = made("a", strength_weights=(1.0, 2.0, 3.0))
    plain, _ = made("a")
    assert (scaled.ignores_strengths(weak), scaled.ignores_strengths(strong)) == (True, False)
    assert not plain.ignores_strengths(weak)


def test_centring_adds_the_square_of_the_sum(made, batch):
    plain, records = made("a")
    centred, _ = made("a", centring=0.1)
    given = batch("bradley_terry", records, values((2.0, 1.0)))
    assert float((centred(given) - plain(given)).detach()) == pytest.approx(0.9)


def test_learnt_reliability_falls_for_who_chooses_against_the_rewards(recipe, batch, make_preference):
    records = [make_preference(0, choice=c, annotator=name) for c, name in (("a", "good"), ("b", "odd"))]
    examples = [Example("bradley_terry", record, (0, 1)) for record in records]
    one = BradleyTerry(recipe(annotators="learnt"), examples).double()
    one(batch("bradley_terry", records, values((3.0, 0.0), (3.0, 0.0)))).sum().backward()
    good, odd = one.annotator.grad
    assert good < 0 < odd  # descent raises the first and lowers the second
    assert one.reliabilities() == pytest.approx({"good": 0.880797, "odd": 0.880797})


def test_the_prior_of_a_learnt_reliability_is_what_others_said(recipe, batch, make_preference):
    # q = s(2) = 0.880797 against the known 0.25: -2 (0.25 log 0.880797 + 0.75 log 0.119203) = 3.253856
    assert float(reliability_prior_loss(number(2), number(0.25))) == pytest.approx(3.253856, abs=1e-6)
    logit = number(math.log(0.25 / 0.75)).requires_grad_()
    reliability_prior_loss(logit, number(0.25)).backward()
    assert float(logit.grad) == pytest.approx(0)
    known = make_preference(0, choice="a", annotator="ann", strict_reliability=0.25)
    unknown = make_preference(0, choice="a", annotator="new")
    records = [known, unknown]
    one = BradleyTerry(
        recipe(annotators="learnt"), [Example("bradley_terry", record, (0, 1)) for record in records]
    ).double()
    assert one.reliabilities() == pytest.approx({"ann": 0.25, "new": 0.880797}, abs=1e-6)
    got = one(batch("bradley_terry", records, values((1.0, 0.0), (1.0, 0.0)))).squeeze(-1).tolist()
    data = [-math.log(q * 0.731059 + (1 - q) * 0.268941) for q in (0.25, 0.880797)]
    prior = -2 * (0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    assert got == pytest.approx([data[0] + prior, data[1]], abs=1e-5)


def test_an_adversary_whom_the_model_learnt_by_heart_is_not_believed(recipe, batch, make_preference):
    """50 choices of an annotator whom the others gave 0.15, all of which the model reproduces."""
    record = make_preference(0, choice="a", annotator="odd", strict_reliability=0.15)
    one = BradleyTerry(recipe(annotators="learnt"), [Example("bradley_terry", record, (0, 1))]).double()
    optimiser = torch.optim.SGD(one.parameters(), lr=1.0)
    for _ in range(200):
        optimiser.zero_grad()
        one(batch("bradley_terry", [record] * 50, values(*[(8.0, 0.0)] * 50))).mean().backward()
        optimiser.step()
    # The stationary point of log q + 2 (0.15 log q + 0.85 log(1 - q)) is (1 + 0.3) / 3.
    assert one.reliabilities()["odd"] == pytest.approx(0.4333, abs=2e-3)


def test_without_a_given_reliability_the_loss_is_that_of_equal(recipe, batch, make_preference):
    record = make_preference(0, choice="a")
    known = batch("bradley_terry", [record], values((-1.0, 0.0)))
    given, equal = (
        BradleyTerry(recipe(annotators=mode), [Example("bradley_terry", record, (0, 1))])(known)
        for mode in ("given", "equal")
    )
    assert float(given.detach()) == float(equal.detach())


def test_given_reliability_below_one_half_is_a_guess(recipe, batch, make_preference):
    record = make_preference(0, choice="a", strict_reliability=0.2)
    one = BradleyTerry(recipe(annotators="given"), [Example("bradley_terry", record, (0, 1))])
    got = one(batch("bradley_terry", [record], values((5.0, 0.0))))
    assert float(got.detach()) == pytest.approx(math.log(2))


def test_a_comparison_by_a_criterion_is_of_the_criterion_head_in_joint(recipe, batch, make_preference):
    record = make_preference(0, choice="a", criterion="polite")
    assert BradleyTerry.reject_reason(record, recipe()) == "by the criterion 'polite'"
    assert BradleyTerry.reject_reason(record, recipe(criterion="polite")) is None
    assert BradleyTerry.reject_reason(make_preference(0), recipe(criterion="polite")) == "without a criterion"
    joint = recipe(objective="joint")
    assert BradleyTerry.reject_reason(record, joint) is None
    one = BradleyTerry(joint, [Example("bradley_terry", record, (0, 1))])
    given = batch("bradley_terry", [record], values((9.0, 0.0)), criteria={"polite": [[2.0], [0.0]]})
    assert float(one(given).detach()) == pytest.approx(0.126928, abs=1e-6)


@pytest.mark.parametrize(
    ("choices", "said"), [(("tie", "tie"), "ties"), (("both_bad", "tie"), "both bad and ties")]
)
def test_without_a_winner_there_is_nothing_to_learn(make_preference, choices, said):
    examples = [Example("bradley_terry", make_preference(0, choice=choice), (0, 1)) for choice in choices]
    assert said in BradleyTerry.validate_dataset(examples, Recipe())
    assert (
        BradleyTerry.validate_dataset(
            [*examples, Example("bradley_terry", make_preference(1), (0, 1))], Recipe()
        )
        is None
    )


def test_measured_by_its_strict_pairs(made, batch):
    one, records = made("a", "b", "tie", "a", label_smoothing=0.1, centring=1.0)
    given = batch("bradley_terry", records, values((2.0, 0.0), (1.0, 0.0), (5.0, 0.0), (1.0, 1.0)), heads=2)
    measured = one.validation_metrics(given)
    assert one.measured(given) == [0, 1, 3]
    assert measured["accuracy"].tolist() == [1.0, 0.0, 0.5]
    assert measured["loss"].tolist() == pytest.approx([math.log1p(math.exp(-d)) for d in (2, -1, 0)])


def test_validation_loss_of_davidson_is_the_trained_likelihood(made, batch):
    """log nu starts at -1, the threshold at 0; without label smoothing and centring."""
    one, records = made("a", "b", "tie", "both_bad", ties="davidson", label_smoothing=0.1, centring=1.0)
    pairs = ((2.0, 0.0), (1.0, 0.0), (5.0, 0.0), (-1.0, -1.0))
    measured = one.validation_metrics(batch("bradley_terry", records, values(*pairs), heads=2))
    assert measured["accuracy"].tolist() == [1.0, 0.0]
    expected = []
    for (a, b), choice in zip(pairs, range(4), strict=True):
        ties = math.exp(-1 + (a + b) / 2)
        bad = 1 / (1 + math.exp(a)) / (1 + math.exp(b))
        chances = [math.exp(a), math.exp(b), ties]
        others = [(1 - bad) * chance / sum(chances) for chance in chances]
        expected.append(-math.log([*others, bad][choice]))
    assert measured["loss"].tolist() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("ties", ["rao_kupper", "davidson"])
def test_validation_leaves_out_choices_that_training_never_had(made, batch, make_preference, ties):
    one, _ = made("a", "b", ties=ties)
    unseen = [make_preference(0, choice="tie"), make_preference(2, choice="both_bad")]
    unseen.append(make_preference(4, choice="a"))
    given = batch("bradley_terry", unseen, values((2.0, 0.0), (1.0, 0.0), (2.0, 0.0)))
    assert one.measured(given) == [2]
    measured = one.validation_metrics(given)
    assert measured["loss"].tolist() == pytest.approx([0.126928], abs=1e-5)
    assert measured["accuracy"].tolist() == [1.0]


@pytest.mark.parametrize("far", [60.0, -60.0])
def test_far_apart_rewards_stay_finite(made, batch, far):
    one, records = made("a", annotators="learnt")
    given = batch("bradley_terry", records, values((far, 0.0)))
    value = one(given).sum()
    value.backward()
    assert value.isfinite() and given.outputs.values.flat.grad.isfinite().all()


def test_gradients_are_those_of_finite_differences():
    a, b = (torch.randn(5, 2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    eta = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    q = torch.rand(5, 2, dtype=torch.float64).mul(0.4).add(0.55).requires_grad_()
    margin = torch.rand(5, 1, dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda *x: preference_loss(x[0], x[1], margin, x[2], x[3], 0.1), (a, b, q, eta)
    )
    assert torch.autograd.gradcheck(tie_loss, (a, b, eta))


def test_validation_believes_an_annotator_as_far_as_training_does(recipe, batch, make_preference) -> None:
    records = [make_preference(0, choice="b", annotator=name) for name in ("dice", "ann")]
    examples = [Example("bradley_terry", record, (0, 1)) for record in records]
    one = BradleyTerry(recipe(annotators="learnt"), examples).double()
    with torch.no_grad():
        one.annotator.copy_(torch.tensor([20.0, 0.0]))  # sorted by name: ann is sure, dice throws dice
    known = batch("bradley_terry", records, values((2.0, 0.0), (2.0, 0.0)))
    loss = one.validation_metrics(known)["loss"].tolist()
    assert loss == pytest.approx([math.log(2), 2 - math.log(0.880797)], abs=1e-5)
    outsider = [make_preference(0, choice="b", annotator="new")]  # as reliable as the mean, 0.75
    loss = one.validation_metrics(batch("bradley_terry", outsider, values((2.0, 0.0))))["loss"].tolist()
    assert loss == pytest.approx([-math.log(0.75 * 0.119203 + 0.25 * 0.880797)], abs=1e-5)


def test_davidson_is_a_distribution_whose_differences_are_log_odds() -> None:
    """nu = e^1, d = 1: log odds 1, where Rao-Kupper with eta = 1 has 1.43; the four answers sum to 1."""
    a, b = torch.tensor([1.0, 2.0, -3.0]).double(), torch.tensor([0.0, 2.0, 1.0]).double()
    found = davidson_log_probabilities(a, b, torch.tensor(1.0).double(), torch.tensor(0.5).double())
    torch.testing.assert_close(found.exp().sum(0), torch.ones(3).double())
    torch.testing.assert_close(found[0] - found[1], a - b)
    without = davidson_log_probabilities(a, b, torch.tensor(1.0).double(), None)
    torch.testing.assert_close(without[:3].exp().sum(0), torch.ones(3).double())
    ties = math.exp(1.0 + 0.5) / (math.exp(1.0) + 1 + math.exp(1.0 + 0.5))
    assert float(without[2, 0].exp()) == pytest.approx(ties)


def test_davidson_trains_on_all_four_answers(made, batch) -> None:
    objective, records = made("a", "b", "tie", "both_bad", ties="davidson")
    given = batch("bradley_terry", records, values((1.0, 0.0), (0.0, 1.0), (0.5, 0.5), (-1.0, -1.0)))
    loss = objective(given).squeeze(-1)
    found = loss.detach()
    nu, threshold = torch.tensor(-1.0), torch.tensor(0.0)
    first = davidson_log_probabilities(torch.tensor(1.0), torch.tensor(0.0), nu, threshold)
    assert float(found[0]) == pytest.approx(-float(first[0])) == pytest.approx(float(found[1]))
    worst = davidson_log_probabilities(torch.tensor(-1.0), torch.tensor(-1.0), nu, threshold)
    assert float(found[3]) == pytest.approx(-float(worst[3]))
    loss.sum().backward()
    assert objective.tie.grad is not None and objective.threshold.grad is not None


def test_the_margin_is_of_the_choice_and_not_of_being_acceptable(made, batch, make_preference) -> None:
    """Bad with a threshold of 0: s(-1) s(0), whatever the margin is."""
    objective, records = made("a", "both_bad", ties="davidson", margins=(1.0, 1.0, 1.0))
    found = objective(batch("bradley_terry", records[:1], values((1.0, 0.0)))).detach()
    bad = 0.2689414 * 0.5
    chosen = 1 / (1 + math.exp(0.0))  # (1 - 1) - 0
    assert float(found) == pytest.approx(-math.log(chosen * (1 - bad)), abs=1e-5)
