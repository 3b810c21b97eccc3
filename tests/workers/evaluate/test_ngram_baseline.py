import random

import pytest

from workers.evaluate.ngram_baseline import MIN_COMPARISONS, ngram_margins
from workers.evaluate.preference import Prediction, preference_report
from workers.schema import Part, PreferenceRecord, Step, Task, Trajectory

GOOD, BAD = ("refund", "verified", "thanks"), ("cannot", "whatever", "never")
FILLER = ["the", "a", "of", "your", "order", "parcel", "day", "we", "it", "is", "on", "this", "that", "week"]


def answer(dice: random.Random, task: int, words: tuple[str, ...], *, salt: str = "") -> Trajectory:
    said = [*dice.choices(FILLER, k=30), *dice.choices(words, k=2)]
    dice.shuffle(said)
    steps = (
        Step(source="user", message=(Part(text=f"Help {task}"),)),
        Step(source="agent", message=(Part(text=" ".join(said) + salt),)),
    )
    return Trajectory(steps=steps, task=Task(id=f"task {task}"))


def comparisons(count: int, seed: int, *, criterion: str | None = None) -> list[PreferenceRecord]:
    dice = random.Random(seed)
    records = []
    for task in range(count):
        better, worse = answer(dice, task, GOOD), answer(dice, task, BAD)
        is_a = dice.random() < 0.5
        a, b = (better, worse) if is_a else (worse, better)
        choice = "a" if is_a else "b"
        records.append(PreferenceRecord(a=a, b=b, choice=choice, annotator="ann", criterion=criterion))
    return records


def test_it_learns_which_words_are_preferred() -> None:
    training, held_out = comparisons(80, 1), comparisons(40, 2)
    margins = ngram_margins(training, held_out, None)
    right = [
        (margins[record.a.content_hash, record.b.content_hash, None] > 0) == (record.choice == "a")
        for record in held_out
    ]
    assert sum(right) == 40


def test_the_order_of_the_two_does_not_matter() -> None:
    training, held_out = comparisons(60, 1), comparisons(5, 2)
    turned = [PreferenceRecord(a=one.b, b=one.a, choice=one.choice, annotator="ann") for one in held_out]
    margins, mirrored = (ngram_margins(training, some, None) for some in (held_out, turned))
    for (a, b, _), margin in margins.items():
        assert mirrored[b, a, None] == pytest.approx(-margin)


def test_all_choices_on_one_side_are_enough() -> None:
    training = [
        record
        if record.choice == "a"
        else PreferenceRecord(a=record.b, b=record.a, choice="a", annotator="ann")
        for record in comparisons(60, 1)
    ]
    held_out = comparisons(10, 2)
    margins = ngram_margins(training, held_out, None)
    assert all(
        (margins[one.a.content_hash, one.b.content_hash, None] > 0) == (one.choice == "a") for one in held_out
    )


def test_too_few_comparisons_or_those_of_another_criterion_are_no_baseline() -> None:
    held_out = comparisons(10, 2)
    assert ngram_margins(comparisons(MIN_COMPARISONS - 1, 1), held_out, None) == {}
    assert ngram_margins(comparisons(60, 1, criterion="kind"), held_out, None) == {}
    of_one_task = [record for record in comparisons(60, 1) for _ in range(60) if record.a.task.id == "task 0"]
    assert ngram_margins(of_one_task, held_out, None) == {}


def test_a_model_below_the_regression_is_told_so() -> None:
    """The regression is right on all 40 held-out comparisons, the model on every second one."""
    training, held_out = comparisons(80, 1), comparisons(40, 2)
    found = [
        Prediction(
            record, (1.0, 0.0) if (record.choice == "a") == (place % 2 == 0) else (0.0, 1.0), (5, 5), (1, 1)
        )
        for place, record in enumerate(held_out)
    ]
    report = preference_report(found, [], ngrams=ngram_margins(training, held_out, None))
    assert report is not None
    baseline = report["preference"]["baselines"]["ngrams"]
    assert baseline["accuracy"] == 1.0 and baseline["difference"] == pytest.approx(-0.5)
    assert baseline["interval"][1] < 0
    assert "an n-gram regression" in report["preference"]["verdict"]
    without = preference_report(found, [], ngrams=ngram_margins(training, held_out[1:], None))
    assert without is not None
    assert "ngrams" not in without["preference"]["baselines"]  # one comparison has no margin
