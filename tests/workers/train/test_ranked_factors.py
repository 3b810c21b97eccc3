"""Comparisons by the first factor that differs."""

from dataclasses import replace

import pytest

from workers.errors import RewardError
from workers.schema import OutcomeRecord, Part, ScoreRecord, Step, Task, Trajectory
from workers.schema.recipe import Recipe, parse_recipe
from workers.train.ranked_factors import criteria_by_weight, ranked_pairs
from workers.train.synthetic_pairs import generate

RECIPE = Recipe(generators=("factors",), generated_per_trajectory=100, factor_margin=0.0)


def run(text: str, *, task: str = "t", steps: int = 1, **metadata: object) -> Trajectory:
    said = Step(source="agent", message=(Part(text=text),))
    return Trajectory(steps=(said,) * steps, task=Task(id=task), metadata=dict(metadata))


def score(trajectory: Trajectory, criterion: str, value: float, weight: float = 1.0) -> ScoreRecord:
    return ScoreRecord(
        trajectory=trajectory,
        criterion=criterion,
        value=value,
        scale=(1.0, 5.0),
        criterion_weight=weight,
        annotator="ann",
    )


def pairs(records, **fields) -> set[tuple[str, str]]:
    found = ranked_pairs(records, replace(RECIPE, **fields), seed=1)
    return {(better.steps[0].text, worse.steps[0].text) for better, worse in found}


def test_the_first_factor_decides_and_the_next_one_where_it_is_equal() -> None:
    scored = {"careful": (5, 1), "quick": (5, 3), "rude": (2, 5)}
    runs = {name: run(name) for name in scored}
    records = [
        score(runs[name], criterion, value)
        for name, values in scored.items()
        for criterion, value in zip(("safe", "short"), values, strict=True)
    ]
    by_safety = {("careful", "rude"), ("quick", "rude"), ("quick", "careful")}
    assert pairs(records, factors=("safe", "short")) == by_safety
    assert pairs(records, factors=("short", "safe")) == {
        ("rude", "quick"),
        ("rude", "careful"),
        ("quick", "careful"),
    }
    assert pairs(records, factors=("safe",)) == {("careful", "rude"), ("quick", "rude")}
    assert pairs(records, factors=("-short",)) == {
        ("careful", "quick"),
        ("careful", "rude"),
        ("quick", "rude"),
    }


def test_a_difference_within_the_margin_leaves_it_to_the_next_factor() -> None:
    """The standard deviation of 4, 5 and 1 is 1.7 of four steps of the scale."""
    scored = {"near": (4, 5), "nearer": (5, 1), "far": (1, 3)}
    records = [
        score(run(name), criterion, value)
        for name, values in scored.items()
        for criterion, value in zip(("safe", "short"), values, strict=True)
    ]
    found = pairs(records, factors=("safe", "short"), factor_margin=1.0)
    assert found == {("near", "nearer"), ("near", "far"), ("nearer", "far")}
    assert ("nearer", "near") in pairs(records, factors=("safe", "short"))


def test_outcomes_steps_and_numbers_of_the_metadata_are_factors() -> None:
    long, short = run("long", steps=4, cost=1.0), run("short", steps=2, cost=9.0)
    records = [OutcomeRecord(trajectory=long, success=True), OutcomeRecord(trajectory=short, success=False)]
    assert pairs(records, factors=("outcome",)) == {("long", "short")}
    assert pairs(records, factors=("steps",)) == {("short", "long")}
    assert pairs(records, factors=("metadata.cost",)) == {("short", "long")}
    assert pairs(records, factors=("-metadata.cost",)) == {("long", "short")}


def test_trajectories_of_other_tasks_are_not_compared_and_each_wins_so_often_at_most() -> None:
    records = [
        score(run(f"{task} {value}", task=task), "safe", value) for task in "ab" for value in (1, 2, 3, 4, 5)
    ]
    found = ranked_pairs(records, replace(RECIPE, generated_per_trajectory=1), seed=1)
    assert len(found) == 8
    assert all(better.task.id == worse.task.id for better, worse in found)
    assert found == ranked_pairs(records, replace(RECIPE, generated_per_trajectory=1), seed=1)


def test_without_names_the_rubric_orders_its_criteria_and_more_of_a_bad_one_is_worse() -> None:
    mild, harsh = run("mild"), run("harsh")
    records = [
        score(mild, "short", 1, 1.0),
        score(harsh, "short", 5, 1.0),
        score(mild, "harmful", 1, -3.0),
        score(harsh, "harmful", 4, -3.0),
    ]
    assert criteria_by_weight(records) == ("harmful", "short")
    assert pairs(records) == {("mild", "harsh")}


@pytest.mark.parametrize(("factors", "words"), [(("unknown",), "'unknown'"), ((), "no rubric scores")])
def test_factors_that_are_nowhere_are_refused(factors: tuple[str, ...], words: str) -> None:
    with pytest.raises(RewardError, match=words) as caught:
        pairs([OutcomeRecord(trajectory=run("x"), success=True)], factors=factors)
    assert caught.value.pointer == "/factors"


def test_the_pairs_are_marked_as_generated() -> None:
    records = [score(run("good"), "safe", 5), score(run("bad"), "safe", 1)]
    recipe = parse_recipe({"generators": ["factors"], "factors": ["safe"]})
    (pair,) = generate(records, recipe, seed=1)
    assert (pair.origin, pair.annotator, pair.weight) == ("simulated", "generator:factors", 0.5)
    assert (pair.a if pair.choice == "a" else pair.b).steps[0].text == "good"
