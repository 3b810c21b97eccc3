"""Marks by agent step: unmarked is unknown, the shared beginning is said of both, the first error is the earliest."""

import pytest

from apps.annotation.feedback_types.step import STEP
from apps.annotation.presentation import PresentedItem
from apps.core.errors import DomainError
from apps.trajectories.models import Trajectory

PAIR = [Trajectory(pk=1, agent_step_count=5), Trajectory(pk=2, agent_step_count=3)]
LABELS = PresentedItem(PAIR, (1, 0))  # left is the second, which has three steps
FIRST = PresentedItem(PAIR, (1, 0), options={"step": {"mark": "first_error"}})


def test_labels_and_corrections_there_and_back() -> None:
    said = {"step-left-2": "bad", "step-left-2-correction": "Ask first.", "step-right-4": "good"}
    rows = STEP.parse({**said, "step-right-0": ""}, LABELS)
    assert [(row.trajectory_id, row.labels, row.corrections) for row in rows] == [
        (2, {"2": "bad"}, {"2": "Ask first."}),
        (1, {"4": "good"}, {}),
    ]
    assert STEP.form_values(rows, LABELS) == said
    assert STEP.summary(rows, LABELS) == "A: 1 bad; B: 1 good"


def test_what_both_begin_with_is_said_of_both() -> None:
    rows = STEP.parse({"step-both-0": "good", "step-right-1": "bad"}, LABELS)
    assert [(row.trajectory_id, row.labels) for row in rows] == [
        (2, {"0": "good"}),
        (1, {"0": "good", "1": "bad"}),
    ]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"step-left-3": "good"}, "agent steps are 0 to 2"),
        ({"step-left-0": "fine"}, "Unknown label"),
        ({"step-left-1-correction": "Ask first."}, "correction but no label"),
    ],
)
def test_marks_that_cannot_be_are_refused(said: dict[str, str], message: str) -> None:
    with pytest.raises(DomainError, match=message):
        STEP.parse(said, LABELS)


def test_the_first_error_there_and_back() -> None:
    said = {"first-left": "2", "first-right": "none"}
    rows = STEP.parse(said, FIRST)
    assert [(row.trajectory_id, row.has_first_error, row.first_error) for row in rows] == [
        (2, True, 2),
        (1, True, None),
    ]
    assert STEP.form_values(rows, FIRST) == said
    assert STEP.summary(rows, FIRST) == "A: first error at step 2; B: no error"


def test_an_error_both_begin_with_is_the_first_of_both() -> None:
    rows = STEP.parse({"first-both": "1", "first-left": "2", "first-right": "none"}, FIRST)
    assert [row.first_error for row in rows] == [1, 1]


def test_how_much_must_be_said() -> None:
    STEP.validate([], LABELS, False)
    with pytest.raises(DomainError, match="at least one step"):
        STEP.validate([], LABELS, True)
    with pytest.raises(DomainError, match="first error in B"):
        STEP.validate(STEP.parse({"first-left": "0"}, FIRST), FIRST, False)


@pytest.mark.parametrize("step", ["3", "-1", "٢", "2.0", "9" * 5000])
def test_a_first_error_that_is_no_step_is_refused(step: str) -> None:
    with pytest.raises(DomainError, match="agent steps are 0 to 2"):
        STEP.parse({"first-left": step, "first-right": "none"}, FIRST)
