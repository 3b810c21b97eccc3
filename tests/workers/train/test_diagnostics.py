"""Models that learnt the wrong thing, trained on the spot: each is called by its name."""

import random
from dataclasses import replace

import msgspec
import pytest

from tests.workers.conftest import WORDS, said
from workers.schema import OutcomeRecord, PreferenceRecord, Task, Trajectory
from workers.train.pipeline import train


def answer(task: str, words: int, dice: random.Random) -> Trajectory:
    text = " ".join(dice.choices(WORDS, k=words))
    return Trajectory(steps=(said("user", "hello the order"), said("agent", text)), task=Task(id=task))


def splits(records: list, *, train: int, test: int) -> dict:
    return {"train": records[:train], "test": records[train : train + test]}


def names(report: dict) -> list[str]:
    return [finding["name"] for finding in report["findings"]]


@pytest.fixture
def recipe(tiny_recipe):
    return replace(tiny_recipe, epochs=8, batch_pairs=16, ensemble=1)


def test_a_model_of_length(run_directory, recipe) -> None:
    dice = random.Random(0)
    records = []
    for number in range(200):
        lengths = sorted(dice.sample(range(4, 60), 2))
        short, long = (answer(f"t{number}", words, dice) for words in lengths)
        a, b = (long, short) if number % 2 else (short, long)
        records.append(PreferenceRecord(a=a, b=b, choice="a" if number % 2 else "b", annotator="ann"))
    report = train(run_directory(recipe, splits(records, train=140, test=60)))
    assert report["preference"]["interval"][0] > 0.5  # it did learn
    assert names(report) == ["length"]
    assert "mainly rewards long answers" in report["findings"][0]["sentence"]


@pytest.mark.parametrize("feedback", ["comparisons", "outcomes"])
def test_a_model_of_shuffled_labels(run_directory, recipe, feedback: str) -> None:
    dice = random.Random(3)
    records = []
    for number in range(160):
        a, b = (answer(f"t{number}", 12, dice) for _ in range(2))
        if feedback == "comparisons":
            records.append(PreferenceRecord(a=a, b=b, choice=dice.choice("ab"), annotator="ann"))
        else:
            records.append(OutcomeRecord(trajectory=a, success=dice.random() < 0.5))
    chosen = recipe if feedback == "comparisons" else replace(recipe, objective="outcome")
    report = train(run_directory(chosen, splits(records, train=100, test=60)))
    assert names(report) == ["chance"]
    assert feedback in report["findings"][0]["sentence"]


def test_a_planted_leak(run_directory, recipe) -> None:
    dice = random.Random(2)
    records = []
    for number in range(80):
        good = answer(f"t{number}", 12, dice)
        bad = answer(f"t{number}", 12, dice)
        records.append(PreferenceRecord(a=good, b=bad, choice="a", annotator="ann"))
    copies = []
    for number, one in enumerate(records[:10]):
        a, b = (msgspec.structs.replace(side, task=Task(id=f"copy-{number}")) for side in (one.a, one.b))
        copies.append(msgspec.structs.replace(one, a=a, b=b))
    report = train(run_directory(recipe, {"train": records[:60], "test": [*records[60:], *copies]}))
    assert names(report)[0] == "leak"
    assert "20 of 60 held-out trajectories are near-copies" in report["findings"][0]["sentence"]
