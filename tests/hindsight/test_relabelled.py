"""A trajectory as if it had been asked to do what it did."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from workers.hindsight.relabelled import relabelled, same_text
from workers.schema import (
    DemonstrationRecord,
    OutcomeRecord,
    Part,
    PreferenceRecord,
    Step,
    Task,
    Trajectory,
    holds_trajectory,
    write_records,
)
from workers.schema.conditions import hindsight_records, with_reached, without_reached


def run(*opening: Step, instruction: str = "Buy tea.", **values: object) -> Trajectory:
    answer = Step(source="agent", message=(Part(text="I bought milk, not: Buy tea."),), reward=0.5)
    task = Task(id="t", instruction=instruction, reference="tea")
    return Trajectory(steps=(*opening, answer), task=task, id="7", **values)  # type: ignore[arg-type]


def step(source: str, text: str) -> Step:
    return Step(source=source, message=(Part(text=text),))  # type: ignore[arg-type]


def opening_texts(trajectory: Trajectory) -> list[tuple[str, str]]:
    return [(step.source, step.text) for step in trajectory.steps[:-1]]


@pytest.mark.parametrize(
    ("opening", "expected"),
    [
        ([step("user", "Buy tea.")], [("user", "Buy milk.")]),
        (
            [step("system", "Goal: Buy tea. Be brief."), step("user", "Page: shop")],
            [("system", "Goal: Buy milk. Be brief."), ("user", "Page: shop")],
        ),
        (
            [step("system", "Be brief."), step("user", "Please get me some tea.")],
            [("system", "Be brief."), ("user", "Buy milk.")],
        ),
        ([], [("user", "Buy milk.")]),
    ],
)
def test_the_agent_reads_the_new_task(opening: list[Step], expected: list[tuple[str, str]]) -> None:
    found = relabelled(run(*opening), "Buy milk.")
    assert opening_texts(found) == expected
    assert found.steps[-1].text == "I bought milk, not: Buy tea."


def test_what_belongs_to_the_task_that_was_asked_for_is_left_out() -> None:
    original = run(step("user", "Buy tea."), reward=0.0, success=False, metadata={"reached": ["x"], "a": 1})
    found = relabelled(original, "Buy milk.")
    assert (found.reward, found.success, found.id, found.steps[-1].reward) == (None, None, None, None)
    assert found.task == Task(id="t", instruction="Buy milk.")
    assert found.metadata == {"a": 1, "goal": "Buy milk.", "derived_from": original.content_hash}
    assert found.content_hash != original.content_hash


def test_the_deletion_of_a_trajectory_finds_what_was_made_from_it(tmp_path: Path) -> None:
    original, other = run(step("user", "Buy tea.")), run(step("user", "Buy jam."), instruction="Buy jam.")
    path = tmp_path / "train.jsonl.zst"
    tricky = replace(other, metadata={"note": f'"derived_from": "{other.content_hash}"'})
    shown = DemonstrationRecord(trajectory=relabelled(original, "Buy milk."), annotator="hindsight")
    write_records(path, [shown, OutcomeRecord(trajectory=relabelled(tricky, "Buy eggs."), success=True)])
    assert holds_trajectory(path, original.content_hash)
    assert holds_trajectory(path, other.content_hash)
    assert not holds_trajectory(path, run(step("user", "Buy figs.")).content_hash)


def test_a_quotation_of_the_key_is_no_source(tmp_path: Path) -> None:
    quoted = run(step("user", f'"derived_from": "{"0" * 64}"'))
    write_records(tmp_path / "a.zst", [OutcomeRecord(trajectory=quoted, success=True)])
    assert not holds_trajectory(tmp_path / "a.zst", "0" * 64)


def test_goals_are_reached_and_are_not() -> None:
    metadata = with_reached({"a": 1, "reached": "x"}, "y")
    assert metadata == {"a": 1, "reached": ["x", "y"]} == with_reached(metadata, "y")
    assert without_reached(metadata, "x") == {"a": 1, "reached": ["y"]}
    assert without_reached(with_reached({"a": 1}, "y"), "y") == {"a": 1}
    assert with_reached({"reached": [1.0, 2.0]}, "y") == {"reached": [[1.0, 2.0], "y"]}


def test_a_trajectory_without_an_outcome_teaches_what_it_reached() -> None:
    first = run(step("user", "Buy tea."), metadata={"reached": ["milk"]})
    second = run(step("user", "Buy jam."), metadata={"reached": ["eggs"]})
    preference = PreferenceRecord(a=first, b=second, choice="a", annotator="ann")
    found = hindsight_records([preference], 1)
    assert sorted((record.trajectory.conditions["goal"], record.success) for record in found) == [
        ("eggs", False),
        ("eggs", True),
        ("milk", False),
        ("milk", True),
    ]


def test_texts_are_the_same_by_their_words() -> None:
    assert same_text("Buy  Tea.\n", "buy tea.") and not same_text("Buy tea.", "Buy milk.")
