"""Comments: the side is as shown, the range is within the trajectory, several at once."""

import pytest

from apps.annotation.feedback_types.comment import COMMENT
from apps.annotation.presentation import PresentedItem
from apps.core.errors import DomainError
from apps.trajectories.models import Trajectory

PAIR = [Trajectory(pk=1, step_count=5), Trajectory(pk=2, step_count=3)]


@pytest.mark.parametrize(("swapped", "pk"), [(False, 2), (True, 1)])
def test_a_comment_there_and_back(swapped: bool, pk: int) -> None:
    shown = PresentedItem(PAIR, (1, 0) if swapped else (0, 1))
    said = {
        "comment-0-text": "Asks twice.",
        "comment-0-on": "right",
        "comment-0-from": "1",
        "comment-0-to": "2",
        "comment-0-sign": "-1",
        "comment-0-quote": "again?",
    }
    (row,) = COMMENT.parse(said, shown)
    assert (row.trajectory_id, row.first_step, row.last_step, row.sign, row.quote) == (pk, 1, 2, -1, "again?")
    assert COMMENT.form_values([row], shown) == said


def test_several_in_their_order_and_empty_ones_left_out() -> None:
    said = {"comment-2-text": "third", "comment-0-text": "first", "comment-1-text": "  "}
    rows = COMMENT.parse(said, PresentedItem(PAIR, (0, 1)))
    assert [row.text for row in rows] == ["first", "third"]
    assert [row.trajectory_id for row in rows] == [1, 1]
    assert rows[0].first_step is None and rows[0].sign is None


def test_one_end_of_a_range_is_that_step() -> None:
    (row,) = COMMENT.parse({"comment-0-text": "x", "comment-0-from": "4"}, PresentedItem(PAIR, (0, 1)))
    assert (row.first_step, row.last_step) == (4, 4)


def test_what_the_database_cannot_hold_is_replaced() -> None:
    (row,) = COMMENT.parse({"comment-0-text": "a\x00b"}, PresentedItem(PAIR, (0, 1)))
    assert row.text == "a\ufffdb"


@pytest.mark.parametrize(
    ("field", "value", "pointer"),
    [
        ("from", "5", "/comment-0-from"),
        ("from", "two", "/comment-0-from"),
        ("to", "-1", "/comment-0-from"),
        ("on", "middle", "/comment-0-on"),
        ("sign", "0", "/comment-0-sign"),
    ],
)
def test_wrong_fields_are_named(field: str, value: str, pointer: str) -> None:
    with pytest.raises(DomainError) as caught:
        COMMENT.parse({"comment-0-text": "x", f"comment-0-{field}": value}, PresentedItem(PAIR, (0, 1)))
    assert caught.value.pointer == pointer


def test_a_place_without_words_is_not_dropped() -> None:
    with pytest.raises(DomainError, match="no text"):
        COMMENT.parse({"comment-0-text": "", "comment-0-quote": "this"}, PresentedItem(PAIR, (0, 1)))


def test_alone_it_must_say_something() -> None:
    COMMENT.validate([], PresentedItem(PAIR, (0, 1)), False)
    with pytest.raises(DomainError, match="at least one comment"):
        COMMENT.validate([], PresentedItem(PAIR, (0, 1)), True)
