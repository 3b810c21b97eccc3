"""Every criterion on its own scale for every run; what cannot be said leaves nothing."""

import pytest

from apps.annotation.feedback_types.rubric import RUBRIC
from apps.annotation.presentation import PresentedItem
from apps.core.errors import DomainError
from apps.rubrics.models import Criterion
from apps.trajectories.models import Trajectory

POLITE = Criterion(pk=7, name="polite", scale_low=1, scale_high=5)
TRUE = Criterion(pk=9, name="true", scale_low=0, scale_high=2)
SHOWN = PresentedItem([Trajectory(pk=1), Trajectory(pk=2)], (1, 0), criteria=[POLITE, TRUE])
FIELDS = {
    "score-left-7": "4",
    "score-left-7-note": "calm",
    "score-right-7": "1",
    "score-left-9": "none",
    "score-right-9": "0",
}


def test_scores_by_side_there_and_back() -> None:
    rows = RUBRIC.parse(FIELDS, SHOWN)
    assert [
        (row.trajectory_id, row.criterion.name, row.value, row.low, row.high, row.note) for row in rows
    ] == [
        (2, "polite", 4, 1, 5, "calm"),
        (1, "polite", 1, 1, 5, ""),
        (1, "true", 0, 0, 2, ""),
    ]
    assert RUBRIC.form_values(rows, SHOWN) == FIELDS
    assert RUBRIC.summary(rows, SHOWN) == "polite A: 4; polite B: 1; true B: 0"


def test_each_must_be_answered_if_only_by_cannot_say() -> None:
    with pytest.raises(DomainError, match="“true” for B has no score") as caught:
        RUBRIC.parse({name: value for name, value in FIELDS.items() if name != "score-right-9"}, SHOWN)
    assert caught.value.pointer == "/score-right-9"


@pytest.mark.parametrize("value", ["6", "2.5", "-1", "nan", "five"])
def test_a_score_beside_the_scale_is_refused(value: str) -> None:
    with pytest.raises(
        DomainError, match=f"^Unknown score '{value}'; allowed are 1, 2, 3, 4, 5, none"
    ) as caught:
        RUBRIC.parse(FIELDS | {"score-left-7": value}, SHOWN)
    assert caught.value.pointer == "/score-left-7"


def test_alone_nothing_at_all_is_not_enough() -> None:
    nothing = RUBRIC.parse(
        dict.fromkeys((name for name in FIELDS if not name.endswith("note")), "none"), SHOWN
    )
    RUBRIC.validate(nothing, SHOWN, False)
    with pytest.raises(DomainError, match="at least one"):
        RUBRIC.validate(nothing, SHOWN, True)


def test_a_criterion_is_asked_of_each_run_in_turn() -> None:
    assert [question.title for question in RUBRIC.questions({}, SHOWN)] == [
        "polite, A",
        "polite, B",
        "true, A",
        "true, B",
    ]
    assert [option.value for option in RUBRIC.questions({}, SHOWN)[2].options] == ["0", "1", "2", "none"]
