"""What length is worth to annotators is learnt and left out of the reward."""

import math

import pytest

from benchmarks.length_control import measure
from tests.workers.conftest import trajectory
from workers.objectives.bradley_terry import BradleyTerry
from workers.objectives.length_effect import LengthEffect, chosen_pairs
from workers.objectives.plackett_luce import PlackettLuce
from workers.schema import PreferenceRecord, RankingRecord


def test_lengths_are_logs_in_standard_deviations_of_training() -> None:
    some = [trajectory("x" * length) for length in (9, 99)]
    effect = LengthEffect([(some[0], some[1])])
    assert [effect.standardised(each) for each in some] == pytest.approx([-1, 1])
    between = trajectory("x" * round(math.sqrt(10 * 100) - 1))
    assert effect.standardised(between) == pytest.approx(0, abs=0.05)
    same = LengthEffect([(some[0], some[0])])
    assert same.standardised(some[0]) == same.gamma.item() == 0
    assert LengthEffect([]).gamma.item() == 0


def test_lengths_that_are_all_equal_have_no_spread() -> None:
    """The mean of seven equal logs is not exactly that log."""
    same = [trajectory(f"{'x' * 9}{number}") for number in range(7)]
    effect = LengthEffect([(same[0], other) for other in same[1:]])
    assert effect.standardised(same[0]) == pytest.approx(0, abs=1e-9)
    assert effect.standardised(trajectory("x" * 20)) == pytest.approx(math.log(21 / 11))


def test_it_begins_where_length_alone_explains_the_choices() -> None:
    """Three of four choose the longer one, two standard deviations apart: s(2 gamma) = 3 / 4."""
    short, long = trajectory("x" * 9), trajectory("x" * 99)
    effect = LengthEffect([(long, short)] * 3 + [(short, long)])
    assert effect.gamma.item() == pytest.approx(math.log(3) / 2, abs=1e-3)
    assert 1 < LengthEffect([(long, short)] * 4).gamma.item() < 10
    ranking = RankingRecord(trajectories=(short, long, short), ranks=(2, 1, 2), annotator="ann")
    assert chosen_pairs(ranking) == [(long, short)] * 2


def test_the_effect_is_part_of_the_loss_and_not_of_the_accuracy(recipe, batch) -> None:
    """r_a - r_b = 1, z_a - z_b = -2, gamma = 0.75: P(a) = s(1 - 1.5)."""
    record = PreferenceRecord(a=trajectory("x" * 9), b=trajectory("x" * 99), choice="a", annotator="ann")
    made = batch("bradley_terry", [record], [[0, 1.0], [0, 0.0]])
    objective = BradleyTerry(recipe(length_control=True), made.examples)
    objective.length.gamma.data.fill_(0.75)
    loss = objective(made)
    assert loss.item() == pytest.approx(math.log1p(math.exp(0.5)))
    loss.sum().backward()
    assert objective.length.gamma.grad.item() == pytest.approx(2 / (1 + math.exp(-0.5)))
    found = objective.validation_metrics(made)
    assert found["loss"].item() == pytest.approx(math.log1p(math.exp(0.5)))
    assert found["accuracy"].item() == 1.0


def test_rankings_have_it_too(recipe, batch) -> None:
    """Worst first: the effect follows each item to its place."""
    sides = tuple(trajectory("x" * length) for length in (99, 9))
    record = RankingRecord(trajectories=sides, ranks=(2, 1), annotator="ann")
    made = batch("plackett_luce", [record], [[0, 0.0], [0, 1.0]])
    objective = PlackettLuce(recipe(length_control=True), made.examples)
    objective.length.gamma.data.fill_(0.75)
    assert objective(made).item() == pytest.approx(math.log1p(math.exp(0.5)))


def test_without_the_key_nothing_is_learnt(recipe, batch) -> None:
    record = PreferenceRecord(a=trajectory("x"), b=trajectory("xx"), choice="a", annotator="ann")
    made = batch("bradley_terry", [record], [[0, 1.0], [0, 0.0]])
    assert [*BradleyTerry(recipe(), made.examples).parameters()] == []


@pytest.mark.ml
def test_a_linear_model_is_right_more_often_where_annotators_like_length() -> None:
    found = [measure("linear", seed, 150) for seed in range(2)]
    gains = [each["length_control"]["accuracy"] - each["nothing"]["accuracy"] for each in found]
    assert min(gains) > 0.02
    assert max(abs(each["length_control"]["follows"]) for each in found) < 0.5
    assert min(each["nothing"]["follows"] for each in found) > 0.7
