"""Accuracy, baselines and verdict, worked out by hand."""

import pytest
from msgspec.structs import replace

from workers.evaluate.bootstrap import t_quantile
from workers.evaluate.comparison import compare_predictions
from workers.evaluate.preference import (
    Prediction,
    accuracy_report,
    length_controlled,
    preference_report,
    subsets,
    uncertainty_report,
    verdict,
)


def test_accuracy_counts_equal_rewards_as_half(predicted) -> None:
    found = [predicted(margin, task=task) for task, margin in enumerate([2.0, 0.1, -1.0, 0.0])]
    report = accuracy_report(found)
    assert (report["accuracy"], report["n"]) == ((1 + 1 + 0 + 0.5) / 4, 4)
    assert report["interval"][0] <= report["accuracy"] <= report["interval"][1]


def test_a_choice_of_b_is_a_margin_the_other_way(predicted) -> None:
    assert accuracy_report([predicted(-3.0, choice="b")])["accuracy"] == 1.0
    assert accuracy_report([predicted(3.0, choice="b")])["accuracy"] == 0.0


def test_baselines_follow_their_rules(predicted) -> None:
    found = [
        predicted(length=(30, 10), steps=(2, 5), task=0),  # the chosen one is longer, in fewer steps
        predicted(length=(10, 30), steps=(5, 2), task=1),  # shorter, in more steps
        predicted(length=(30, 10), steps=(3, 3), task=2),  # longer, in equally many
        predicted(length=(10, 30), steps=(2, 3), choice="b", task=3),  # b was chosen: longer, in more
    ]
    rules = accuracy_report(found)["baselines"]
    assert {name: one["accuracy"] for name, one in rules.items()} == {
        "longer": 0.75,
        "shorter": 0.25,
        "fewer_steps": 0.375,
    }


def test_the_difference_to_a_baseline_is_paired(predicted) -> None:
    """Model and rule are right on the same comparisons; of nine tasks that excludes no small difference."""
    found = [
        predicted(1.0 if task % 3 else -1.0, length=(30, 10) if task % 3 else (10, 30), task=task)
        for task in range(9)
    ]
    longer = accuracy_report(found)["baselines"]["longer"]
    bound = pytest.approx(t_quantile(8) / 11)  # an error of 1 / (9 + 2)
    assert longer["difference"] == 0.0
    assert (-longer["interval"][0], longer["interval"][1]) == (bound, bound)


def test_length_control_counts_longer_and_shorter_winners_alike(predicted) -> None:
    """9 longer winners of which 8 are found, 3 shorter ones of which 1 is, and one of equal length."""
    longer = [predicted(1.0 if task else -1.0, length=(30, 10), task=task) for task in range(9)]
    shorter = [predicted(-1.0 if task else 1.0, length=(10, 30), task=task + 20) for task in range(3)]
    found = length_controlled([*longer, *shorter, predicted(1.0, length=(10, 10), task=99)])
    assert found["longer"] == pytest.approx(8 / 9)
    assert found["shorter"] == pytest.approx(1 / 3)
    assert found["accuracy"] == pytest.approx((8 / 9 + 1 / 3) / 2)
    assert found["n"] == 12
    assert found["interval"][0] < found["accuracy"] < found["interval"][1]
    assert length_controlled(longer) is None


@pytest.mark.parametrize("sign", [1, -1])
def test_a_reward_that_is_length_gets_one_half_under_length_control(predicted, sign) -> None:
    found = [
        predicted(float(sign) * (1 if task % 4 else -1), length=(30, 10) if task % 4 else (10, 30), task=task)
        for task in range(40)
    ]
    assert length_controlled(found)["accuracy"] == 0.5


def rule(low: float) -> dict:
    return {"accuracy": 0.5, "difference": 0.1, "interval": [low, 0.2]}


def test_the_verdict_names_what_is_not_shown_to_be_beaten() -> None:
    beaten = {"longer": rule(0.01), "shorter": rule(0.01), "fewer_steps": rule(0.01)}
    assert verdict(beaten, 10) == "beats every trivial baseline"
    assert verdict(beaten, 9) == "too few tasks (9; at least 10)"
    assert verdict(beaten | {"shorter": rule(-0.01)}, 10) == "does not beat shorter-wins"
    assert verdict(dict.fromkeys(beaten, rule(0.0)), 10) == (
        "does not beat longer-wins and shorter-wins and fewer-steps-wins"
    )


def test_ties_and_both_bad_are_counted_and_not_measured(predicted) -> None:
    found = [predicted(1.0), predicted(1.0, choice="tie"), predicted(1.0, choice="both_bad")]
    report = preference_report(found, [])
    assert report is not None
    preference = report["preference"]
    assert (preference["n"], preference["ties"], preference["both_bad"]) == (1, 1, 1)
    assert preference_report(found[1:], []) is None


def test_two_models_are_compared_on_the_same_comparisons(predicted) -> None:
    ours = [predicted(1.0, task=0), predicted(1.0, task=1), predicted(0.0, choice="tie", task=2)]
    theirs = [predicted(1.0, task=0), predicted(-1.0, task=1), predicted(0.0, choice="tie", task=2)]
    compared = compare_predictions(ours, theirs)
    assert (compared["difference"], compared["n"]) == (0.5, 2)
    assert (compared["flips"]["won"], compared["flips"]["lost"]) == (1, 0)
    (flip,) = compared["flips"]["examples"]
    assert (flip["task"], flip["margin"], flip["other_margin"], flip["won"]) == ("t2", 1.0, -1.0, True)


def test_one_task_shows_nothing(predicted) -> None:
    """Two comparisons of one task, both right."""
    report = accuracy_report([predicted(1.0, length=(5, 5)), predicted(1.0, length=(5, 5))])
    assert (report["accuracy"], report["interval"], report["tasks"]) == (1.0, [0.0, 1.0], 1)
    assert report["baselines"]["longer"]["interval"] == [-1.0, 1.0]
    assert report["verdict"] == "too few tasks (1; at least 10)"


def test_where_there_are_several_criteria_each_is_a_subset(predicted) -> None:
    def by(criterion: str | None, margin: float, task: int) -> Prediction:
        one = predicted(margin, task=task)
        return Prediction(replace(one.record, criterion=criterion), one.raw, one.length, one.steps)

    kept = [by(None, 1.0, 0), by("kind", 1.0, 0), by("kind", -1.0, 1)]
    found = {name: (one["accuracy"], one["n"]) for name, one in subsets(kept).items()}
    assert found == {"overall": (1.0, 1), "by kind": (0.5, 2)}
    assert subsets(kept[1:]) == {}, "of a single criterion it is the accuracy"


def test_the_spread_of_heads_against_errors(predicted) -> None:
    """Ranks 0, 1, 2, 3 of the spread against errors 0, 0, 1, 1: Spearman 2 / sqrt(5)."""
    margins = (1.0, 1.0, -1.0, -1.0)
    found = [
        replace_std(predicted(margin, task=task), 0.1 * (1 + task)) for task, margin in enumerate(margins)
    ]
    report = uncertainty_report(found)
    assert report is not None
    assert (report["spearman"], report["n"], report["tasks"]) == (pytest.approx(2 / 5**0.5), 4, 4)
    assert uncertainty_report([predicted(1.0), predicted(-1.0, task=1)]) is None, "no ensemble"


def replace_std(found: Prediction, std: float) -> Prediction:
    return Prediction(found.record, found.raw, found.length, found.steps, (std, std))
