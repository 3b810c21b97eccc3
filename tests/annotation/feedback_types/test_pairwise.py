"""Choices are of the shown side; rows are of the stored position, under either coin."""

import pytest

from apps.annotation.feedback_types.pairwise import PAIRWISE
from apps.annotation.models import Preference
from apps.annotation.presentation import PresentedItem
from apps.core.errors import DomainError
from apps.rubrics.models import Criterion
from apps.trajectories.models import Trajectory

PAIR = [Trajectory(pk=1), Trajectory(pk=2)]


@pytest.mark.parametrize(
    ("swapped", "said", "choice", "strength"),
    [
        (False, "left-3", "a", 3),
        (False, "right-1", "b", 1),
        (True, "left-3", "b", 3),
        (True, "right-2", "a", 2),
        (True, "tie", "tie", 1),
        (False, "both_bad", "both_bad", 1),
    ],
)
def test_the_coin_turns_sides_into_positions_and_back(
    swapped: bool, said: str, choice: str, strength: int
) -> None:
    shown = PresentedItem(PAIR, (1, 0) if swapped else (0, 1))
    (row,) = PAIRWISE.parse({"choice": said}, shown)
    assert (row.choice, row.strength) == (choice, strength)
    assert PAIRWISE.form_values([row], shown) == {"choice": said}


@pytest.mark.parametrize("said", ["left-4", "left", "middle-1", "a", "left-1-2"])
def test_other_words_are_refused(said: str) -> None:
    with pytest.raises(DomainError, match="Unknown choice"):
        PAIRWISE.parse({"choice": said}, PresentedItem(PAIR, (0, 1)))


def test_nothing_said_is_no_row_and_not_enough() -> None:
    assert PAIRWISE.parse({}, PresentedItem(PAIR, (0, 1))) == []
    with pytest.raises(DomainError, match="Choose an answer first"):
        PAIRWISE.validate([], PresentedItem(PAIR, (0, 1)), False)
    PAIRWISE.validate([Preference(choice="a")], PresentedItem(PAIR, (0, 1)), True)


def by(how: str) -> PresentedItem:
    criteria = [Criterion(pk=7, name="polite"), Criterion(pk=9, name="true")]
    return PresentedItem(PAIR, (1, 0), criteria, {"pairwise": {"by": how}})


def test_by_criteria_each_has_a_choice_of_its_own() -> None:
    said = {"choice": "tie", "choice-7": "left-3", "choice-9": "both_bad"}
    rows = PAIRWISE.parse(said, by("both"))
    assert [(row.criterion and row.criterion.name, row.choice, row.strength) for row in rows] == [
        (None, "tie", 1),
        ("polite", "b", 3),
        ("true", "both_bad", 1),
    ]
    assert PAIRWISE.form_values(rows, by("both")) == said
    assert PAIRWISE.summary(rows, by("both")) == "Tie; polite: A much better; true: Both bad"
    assert [row.criterion_id for row in PAIRWISE.parse(said, by("criteria"))] == [7, 9]
    assert [row.criterion_id for row in PAIRWISE.parse(said, by("overall"))] == [None]


def test_each_criterion_must_be_chosen_by() -> None:
    with pytest.raises(DomainError, match="Choose an answer first by “true”") as caught:
        PAIRWISE.validate(PAIRWISE.parse({"choice": "tie", "choice-7": "tie"}, by("both")), by("both"), False)
    assert caught.value.pointer == "/choice-9"
