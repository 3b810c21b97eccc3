"""Accept or reject, or a number: what the campaign asks."""

import pytest

from apps.annotation.feedback_types.rating import RATING
from apps.annotation.presentation import PresentedItem
from apps.core.errors import DomainError
from apps.trajectories.models import Trajectory

PAIR = [Trajectory(pk=1), Trajectory(pk=2)]


def shown(scale: str = "", order: tuple[int, ...] = (1, 0)) -> PresentedItem:
    return PresentedItem(PAIR[: len(order)], order, options={"rating": {"scale": scale}} if scale else {})


def test_accept_and_reject_by_side() -> None:
    said = {"rating-left": "accept", "rating-right": "reject"}
    rows = RATING.parse(said, shown())
    assert [(row.trajectory_id, row.accept, row.rating) for row in rows] == [
        (2, True, None),
        (1, False, None),
    ]
    assert RATING.form_values(rows, shown()) == said
    assert RATING.summary(rows, shown()) == "A: Accept; B: Reject"


def test_a_number_keeps_its_scale() -> None:
    (row,) = RATING.parse({"rating-left": "4"}, shown("5", (0,)))
    assert (row.accept, row.rating, row.low, row.high) == (None, 4, 1, 5)
    assert RATING.form_values([row], shown("5", (0,))) == {"rating-left": "4"}
    assert RATING.summary([row], shown("5", (0,))) == "4 of 5"


@pytest.mark.parametrize(("scale", "said"), [("", "4"), ("5", "6"), ("5", "accept"), ("5", "4.5")])
def test_what_was_not_asked_is_refused(scale: str, said: str) -> None:
    with pytest.raises(DomainError, match="Unknown rating"):
        RATING.parse({"rating-left": said}, shown(scale))


def test_every_run_is_rated() -> None:
    rows = RATING.parse({"rating-left": "accept"}, shown())
    with pytest.raises(DomainError, match="Rate B") as caught:
        RATING.validate(rows, shown(), False)
    assert caught.value.pointer == "/rating-right"


def test_keys_up_to_ten() -> None:
    (question,) = RATING.questions({}, shown("10", (0,)))
    assert [option.key for option in question.options] == [*"123456789", "0"]
