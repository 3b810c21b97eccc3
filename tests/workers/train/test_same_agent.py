"""Comparisons by who wrote a trajectory, and a model that learns from them alone."""

from dataclasses import replace

import pytest
import torch

from workers.errors import RewardError
from workers.models import load
from workers.schema import OutcomeRecord, Part, PreferenceRecord, Step, Task, ToolCall, Trajectory
from workers.schema.conditions import conditioned_records, with_conditions
from workers.schema.recipe import Recipe, parse_recipe
from workers.train.cross_validation import CrossValidation
from workers.train.events import no_report
from workers.train.pipeline import train
from workers.train.same_agent import reference_text, same_agent_pairs
from workers.train.synthetic_pairs import generate

WORDS = ("order", "refund", "answer", "invoice", "parcel")
RECIPE = Recipe(generators=("same_agent",), conditioned=("reference",), generated_per_trajectory=100)


def written(text: str, agent: str, *, task: str = "t", version: str = "") -> Trajectory:
    steps = (
        Step(source="user", message=(Part(text="hello"),)),
        Step(source="agent", message=(Part(text=text),)),
    )
    return Trajectory(steps=steps, task=Task(id=task), agent=agent, agent_version=version)


def outcomes(*trajectories: Trajectory) -> list[OutcomeRecord]:
    return [OutcomeRecord(trajectory=trajectory, success=False) for trajectory in trajectories]


def pairs(*trajectories: Trajectory, **fields) -> set[tuple[str, str, str]]:
    """(reference, better, worse)"""
    found = same_agent_pairs(outcomes(*trajectories), replace(RECIPE, **fields), seed=1)
    assert all(better.conditions == worse.conditions for better, worse in found)
    return {
        (better.conditions["reference"], better.steps[-1].text, worse.steps[-1].text)
        for better, worse in found
    }


def test_the_better_one_is_by_the_agent_of_the_reference() -> None:
    found = pairs(written("a1", "a"), written("a2", "a"), written("b1", "b"), written("b2", "b"))
    assert found == {
        (f"{agent}{3 - number}", f"{agent}{number}", f"{other}{rival}")
        for agent, other in ("ab", "ba")
        for number in (1, 2)
        for rival in (1, 2)
    }


def test_an_agent_with_one_trajectory_of_a_task_is_known_by_another_task() -> None:
    found = pairs(written("a1", "a"), written("b1", "b"), written("a2", "a", task="other"))
    assert found == {("a2", "a1", "b1")}


def test_versions_are_agents_and_those_without_a_name_are_left_out() -> None:
    found = pairs(
        written("old", "a", version="1"),
        written("new", "a", version="2"),
        written("newer", "a", version="2"),
        written("unknown", ""),
    )
    assert found == {("newer", "new", "old"), ("new", "newer", "old")}


def test_what_two_agents_wrote_alike_tells_neither() -> None:
    found = pairs(
        written("yes", "a"), written("yes", "b"), written("a1", "a"), written("a2", "a"), written("b1", "b")
    )
    assert found == {("a2", "a1", "b1"), ("a1", "a2", "b1")}


def test_each_is_the_better_one_so_often_at_most_and_drawn_by_the_seed() -> None:
    made = [written(f"{agent}{number}", agent) for agent in "abc" for number in range(4)]
    found = pairs(*made, generated_per_trajectory=2)
    assert len(found) == 2 * len(made)
    assert found == pairs(*made, generated_per_trajectory=2)


def test_a_reference_is_what_the_agent_wrote_and_called() -> None:
    call = ToolCall(name="look", arguments={"at": "order"})
    steps = (
        Step(source="user", message=(Part(text="where?"),)),
        Step(source="agent", message=(Part(text="I look"),), tool_calls=(call,)),
        Step(source="agent", message=(Part(text="sent"),)),
    )
    text = reference_text(Trajectory(steps=steps, task=Task(id="t")))
    assert text == 'I look\nlook({"at": "order"})\n\nsent'


@pytest.mark.parametrize(
    "trajectories",
    [
        [written("a1", "a"), written("a2", "a")],
        [written("a1", "a"), written("b1", "b", task="other")],
        [written("a1", "a"), written("b1", "b")],
        [written("a1", ""), written("b1", "")],
    ],
)
def test_data_that_tells_nothing_is_refused(trajectories) -> None:
    with pytest.raises(RewardError, match="found no two agents with trajectories of one task") as caught:
        pairs(*trajectories)
    assert caught.value.pointer == "/generators"


def test_it_needs_a_model_that_reads_references() -> None:
    with pytest.raises(RewardError, match="conditioned = \\['reference'\\]") as caught:
        parse_recipe({"generators": ["same_agent"]})
    assert caught.value.pointer == "/generators"
    values = {"generators": ["same_agent"], "conditioned": ["reference"]}
    (pair, _) = generate(
        outcomes(
            written("a1", "a"), written("b1", "b"), written("a2", "a", task="o"), written("b2", "b", task="p")
        ),
        parse_recipe(values),
        seed=1,
    )
    assert (pair.origin, pair.annotator, pair.weight) == ("simulated", "generator:same_agent", 0.5)


def test_a_model_learns_agents_from_trajectories_without_labels_and_is_a_parent(run_directory) -> None:
    """Agents differ in a word; held out are tasks. What it has learnt is the prior of a fine-tuning."""
    words = {"one": "fine", "two": "poor"}

    def of_task(number: int) -> list[Trajectory]:
        return [
            written(f"the {WORDS[(number + place) % len(WORDS)]} was {word}", agent, task=f"t{number}")
            for agent, word in words.items()
            for place in (0, 1)
        ]

    splits = {
        name: [
            OutcomeRecord(trajectory=trajectory, success=bool(number % 2))
            for number in numbers
            for trajectory in of_task(number)
        ]
        for name, numbers in (("train", range(20)), ("validation", range(20, 22)), ("test", range(22, 28)))
    }
    recipe = Recipe(backbone="linear", generators=("same_agent",), conditioned=("reference",), ensemble=1)
    folder = run_directory(recipe, splits=splits)
    report = train(folder)
    assert report["train"]["generated"] == {"same_agent": 80} and report["train"]["examples"] == 80
    model = load(folder / "model")

    def rewards(reference: str, number: int) -> list[float]:
        shown = [with_conditions(side, ("reference",), {"reference": reference}) for side in of_task(number)]
        return [score.raw for score in model.score([model.render(side) for side in shown])]

    for number in range(22, 28):
        first, second = rewards("it is fine", number), rewards("it is poor", number)
        assert min(first[:2]) > max(first[2:]) and max(second[:2]) < min(second[2:])
    preferences = {
        name: [
            PreferenceRecord(a=of_task(number)[0], b=of_task(number)[2], choice="a", annotator="ann")
            for number in numbers
        ]
        for name, numbers in (
            ("train", range(30, 60)),
            ("validation", range(60, 64)),
            ("test", range(64, 70)),
        )
    }
    tuned = run_directory(replace(recipe, generators=()), splits=preferences, parent={"name": "p/m@1"})
    (tuned / "parent").mkdir()
    (folder / "model").rename(tuned / "parent" / "model")
    assert train(tuned)["train"]["parent"] == {"name": "p/m@1"}


def test_what_records_ask_by_is_no_part_of_the_pairs() -> None:
    """By two criteria a trajectory has two principles, and would be its own reference."""
    a1, a2, b1 = written("a1", "a"), written("a2", "a", task="other"), written("b1", "b")
    records = conditioned_records(
        [
            PreferenceRecord(a=a1, b=b1, choice="a", annotator="ann", criterion=name)
            for name in ("polite", "right")
        ]
        + outcomes(a2),
        ("reference", "principle"),
    )
    recipe = replace(RECIPE, conditioned=("reference", "principle"))
    ((better, worse),) = same_agent_pairs(records, recipe, seed=1)
    assert (better.steps, worse.steps) == (a1.steps, b1.steps)
    assert better.conditions == worse.conditions == {"reference": "a2"}


def test_folds_have_generated_comparisons_of_the_tasks_that_they_learn_from() -> None:
    """No one has labelled a comparison: without them there is nothing to learn."""
    records = outcomes(
        *(
            written(f"the {WORDS[(number + place) % len(WORDS)]} was {word}", agent, task=f"t{number}")
            for number in range(6)
            for agent, word in (("one", "fine"), ("two", "poor"))
            for place in (0, 1)
        )
    )
    recipe = replace(RECIPE, backbone="linear", ensemble=1, folds=3, generated_per_trajectory=1)
    folds = CrossValidation(recipe, 0, torch.device("cpu"), no_report)
    module, _ = folds.train_on(records[:8], [])
    made = [example.record for example in module.examples.items]
    assert {record.annotator for record in made} == {"generator:same_agent"} and len(made) == 8
    assert {record.a.task.id for record in made} == {"t0", "t1"}
    assert len(folds.score_held_out(records).scored_records) == len(records)
