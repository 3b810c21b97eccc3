"""One annotator and the model against the majority of the other annotators, by hand."""

import random

import msgspec
import pytest

from workers.evaluate import Prediction
from workers.evaluate.annotators import annotator_report


@pytest.fixture
def judged(make_preference):
    """make(number, margin, ann="a", ...): one prediction for each annotator's choice on an item."""

    def make(number: int, margin: float = 1.0, **choices: str) -> list[Prediction]:
        records = [make_preference(number, annotator=name, choice=choice) for name, choice in choices.items()]
        return [Prediction(record, (margin, 0.0), (5, 5), (1, 1)) for record in records]

    return make


def measured(found: list[Prediction]) -> tuple[float, float, int]:
    report = annotator_report(found)
    assert report is not None
    return report["leave_one_out"], report["model"], report["n"]


def test_three_annotators_of_whom_one_differs(judged) -> None:
    """ann and bob have no majority against them (a and b once each); cem has two: 0 of 1, and the model 1 of 1."""
    assert measured(judged(0, ann="a", bob="a", cem="b")) == (0.0, 1.0, 1)


def test_four_annotators_over_two_items(judged) -> None:
    """Item 0: three of a, one of b: 3 right of 4; the model takes a: 4. Item 2: all b: 4 of 4, and the model 0."""
    found = judged(0, ann="a", bob="a", cem="a", dan="b") + judged(2, ann="b", bob="b", cem="b", dan="b")
    assert measured(found) == (7 / 8, 4 / 8, 8)
    report = annotator_report(found)
    assert report is not None
    assert report["difference"] == -3 / 8


def test_a_tie_is_no_choice_and_no_error(judged) -> None:
    """ann's tie is not counted and chooses neither for the others: bob and cem have each other."""
    assert measured(judged(0, ann="tie", bob="a", cem="a")) == (1.0, 1.0, 2)
    assert measured(judged(0, ann="both_bad", bob="a", cem="a")) == (1.0, 1.0, 2)
    assert annotator_report(judged(0, ann="tie", bob="tie", cem="tie")) is None
    assert annotator_report(judged(0, ann="tie", bob="tie", cem="a")) is None, "the others chose neither"


def test_equal_rewards_are_half_right(judged) -> None:
    assert measured(judged(0, margin=0.0, ann="a", bob="a", cem="a")) == (1.0, 0.5, 3)


def test_two_are_too_few_and_judges_do_not_count(judged, make_preference) -> None:
    assert annotator_report(judged(0, ann="a", bob="a")) is None
    judge = Prediction(
        make_preference(0, annotator="judge:x", choice="a", origin="judge"), (1.0, 0.0), (5, 5), (1, 1)
    )
    assert annotator_report([*judged(0, ann="a", bob="a"), judge]) is None


def test_sides_swapped_are_the_same_item(judged) -> None:
    """The same two trajectories the other way round: cem's b is ann's a, and the model's reward moves along."""
    (last,) = judged(0, cem="b")
    mirrored = msgspec.structs.replace(last.record, a=last.record.b, b=last.record.a)
    found = [*judged(0, ann="a", bob="a"), Prediction(mirrored, (0.0, 1.0), (5, 5), (1, 1))]
    assert measured(found) == (1.0, 1.0, 3)


def test_who_judges_twice_counts_once(judged) -> None:
    found = judged(0, ann="b", bob="a", cem="a") + judged(0, ann="a")
    assert measured(found) == (1.0, 1.0, 3)


def test_criteria_are_apart(judged, make_preference) -> None:
    polite = Prediction(
        make_preference(0, annotator="cem", choice="a", criterion="polite"), (1.0, 0.0), (5, 5), (1, 1)
    )
    assert annotator_report([*judged(0, ann="a", bob="a"), polite]) is None


@pytest.mark.parametrize(("right", "tie"), [(1.0, 0.3), (0.85, 0.0), (0.85, 0.2), (0.95, 0.3)])
def test_a_model_as_good_as_a_person_reaches_what_a_person_reaches(judged, right: float, tie: float) -> None:
    """The model errs and chooses exactly as often as an annotator does: the paired interval contains 0. A perfect model
    is above by the annotator's own errors: with q of the others right, r q + (1 - r)(1 - q) against q."""
    dice = random.Random(0)
    same: list[Prediction] = []
    perfect: list[Prediction] = []
    for item in range(300):
        best = dice.random() < 0.5
        choices = {}
        for name in ("ann", "bob", "cem"):
            is_right = dice.random() < right
            choices[name] = "tie" if dice.random() < tie else "a" if best == is_right else "b"
        model = 1.0 if best == (dice.random() < right) else -1.0
        same += judged(2 * item, margin=model, **choices)
        perfect += judged(2 * item, margin=1.0 if best else -1.0, **choices)
    report, ceiling = annotator_report(same), annotator_report(perfect)
    assert report is not None
    assert ceiling is not None
    low, high = report["difference_interval"]
    assert low <= 0 <= high
    expected = right * ceiling["model"] + (1 - right) * (1 - ceiling["model"])
    assert ceiling["leave_one_out"] == pytest.approx(expected, abs=0.04)
