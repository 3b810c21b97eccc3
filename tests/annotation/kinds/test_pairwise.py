"""Choices are of the shown side; rows are of the stored position, under either coin."""

import pytest

from apps.annotation.kinds import Shown
from apps.annotation.kinds.pairwise import check, fields, parse
from apps.annotation.models import Preference
from apps.core.errors import DomainError
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
    shown = Shown(PAIR, swapped)
    (row,) = parse({"choice": said}, shown)
    assert (row.choice, row.strength) == (choice, strength)
    assert fields([row], shown) == {"choice": said}


@pytest.mark.parametrize("said", ["left-4", "left", "middle-1", "a", "left-1-2"])
def test_other_words_are_refused(said: str) -> None:
    with pytest.raises(DomainError, match="no choice"):
        parse({"choice": said}, Shown(PAIR, False))


def test_nothing_said_is_no_row_and_not_enough() -> None:
    assert parse({}, Shown(PAIR, False)) == []
    with pytest.raises(DomainError, match="Choose first"):
        check([], alone=False)
    check([Preference(choice="a")], alone=True)
