"""Ranks are given by side and stored by position, dense, ties kept."""

import pytest

from apps.annotation.feedback_types.ranking import RANKING, dense
from apps.annotation.presentation import PresentedItem
from apps.core.errors import DomainError
from apps.trajectories.models import Trajectory

THREE = [Trajectory(pk=1), Trajectory(pk=2), Trajectory(pk=3)]
SHOWN = PresentedItem(THREE, (2, 0, 1))  # left is the third, then the first, then the second


def test_ranks_by_side_become_ranks_by_position_and_back() -> None:
    said = {"rank-left": "1", "rank-second": "2", "rank-right": "3", "rank-third": "3"}
    (row,) = RANKING.parse(said, SHOWN)
    assert row.ranks == [2, 2, 1]
    assert RANKING.form_values([row], SHOWN) == {"rank-left": "1", "rank-right": "2", "rank-third": "2"}
    assert RANKING.summary([row], SHOWN) == "A > B = C"


def test_ranks_are_dense() -> None:
    assert dense([3, 1, 3]) == [2, 1, 2]
    assert dense([7]) == [1]


def test_one_without_a_rank_is_asked_for() -> None:
    with pytest.raises(DomainError, match="C has no rank") as caught:
        RANKING.parse({"rank-left": "1", "rank-right": "2"}, SHOWN)
    assert caught.value.pointer == "/rank-third"
    with pytest.raises(DomainError, match="rank first"):
        RANKING.validate(RANKING.parse({}, SHOWN), SHOWN, True)


def test_a_rank_beyond_the_runs_is_none() -> None:
    with pytest.raises(DomainError, match="Unknown rank"):
        RANKING.parse({"rank-left": "4"}, SHOWN)
