"""Right answers with another value in place of the reference."""

import random

import pytest

from workers.schema import OutcomeRecord, Part, PreferenceRecord, Step, Task, Trajectory
from workers.schema.recipe import parse_recipe
from workers.train.synthetic_pairs import generate
from workers.train.wrong_answers import with_wrong_answer


def run(text: str, reference: str | None, task: str = "t") -> Trajectory:
    steps = (
        Step(source="user", message=(Part(text="How many?"),)),
        Step(source="agent", message=(Part(text="I count 12."),)),
        Step(source="agent", message=(Part(text=text),)),
    )
    return Trajectory(steps=steps, task=Task(id=task, reference=reference))


@pytest.mark.parametrize("seed", range(20))
def test_one_digit_of_the_answer_changes_wherever_it_stands(seed: int) -> None:
    found = with_wrong_answer(run("It is 12, so: #### 12", "12"), (), random.Random(seed))
    assert found is not None
    first, second = (word.strip(",") for word in found.steps[-1].text.split() if word.strip(",").isdigit())
    assert first == second != "12" and len(first) == 2 and first[0] != "0"
    assert sum(a != b for a, b in zip(first, "12", strict=True)) == 1
    assert found.steps[:-1] == run("", None).steps[:-1]


@pytest.mark.parametrize(
    "text",
    ["It is 112.", "It is 12.5.", "It is 12,500.", "It is 0.12.", "It is 5,12.", "It is 12th.", "None."],
)
def test_what_is_no_answer_is_left(text: str) -> None:
    assert with_wrong_answer(run(text, "12"), ("13",), random.Random(0)) is None


def test_an_answer_without_digits_becomes_that_of_another_task() -> None:
    given = run("It is Paris.", "Paris")
    found = with_wrong_answer(given, ("paris", "Rome"), random.Random(0))
    assert found is not None and found.steps[-1].text == "It is Rome."
    assert with_wrong_answer(given, ("Paris",), random.Random(0)) is None
    assert with_wrong_answer(run("It is Paris.", None), ("Rome",), random.Random(0)) is None


def test_the_generator_pairs_answers_that_were_accepted_with_wrong_ones() -> None:
    good, bad = run("#### 12", "12"), run("#### 13", "12")
    records = [
        PreferenceRecord(a=bad, b=good, choice="b", annotator="verifier:e"),
        OutcomeRecord(trajectory=run("It is Rome.", "Rome", "u"), success=True),
        OutcomeRecord(trajectory=run("It is Paris.", "Paris", "v"), success=True),
    ]
    made = generate(records, parse_recipe({"generators": ["wrong_answer"]}), seed=0)
    sides = [(pair.a, pair.b) if pair.choice == "a" else (pair.b, pair.a) for pair in made]
    texts = {better.steps[-1].text: worse.steps[-1].text for better, worse in sides}
    assert texts.keys() == {"#### 12", "It is Rome.", "It is Paris."}
    assert texts["It is Rome."] == "It is Paris." and texts["#### 12"] != "#### 12"
    assert all(pair.annotator == "generator:wrong_answer" and pair.weight == 0.5 for pair in made)
