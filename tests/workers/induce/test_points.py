"""Comments taken apart into the points they make."""

import pytest

from workers.induce.comment_points import MAX_POINT_LENGTH, MAX_POINTS, split_into_points


@pytest.mark.parametrize(
    ("comment", "points"),
    [
        ("It clicked the disabled button again.", ["It clicked the disabled button again."]),
        ("Too slow. Never asked!  Why?", ["Too slow.", "Never asked! Why?"]),
        ("Polite, but it never looked the order up.", ["Polite", "it never looked the order up."]),
        ("Polite although slow, however correct.", ["Polite although slow", "correct."]),
        ("- read the file\n- forgot the test\n2) ran twice", ["read the file", "forgot the test", "ran twice"]),
        ("It used v1.2 of refunds.py, e.g. late(order). Then stopped.",
         ["It used v1.2 of refunds.py, e.g. late(order).", "Then stopped."]),
        ("Paid 3.50 too much; never said so.", ["Paid 3.50 too much", "never said so."]),
        ("很慢。没有问顾客！", ["很慢。", "没有问顾客！"]),
        ("Sehr höflich, aber zu langsam. Gut erklärt.", ["Sehr höflich", "zu langsam.", "Gut erklärt."]),
        ("Correct. Yes.", ["Correct. Yes."]),
        ("", []),
        (" \n\t--- ... ", []),
        ("He said \"No.\" Then left.", ["He said \"No.\"", "Then left."]),
    ],
)  # fmt: skip
def test_points(comment: str, points: list[str]) -> None:
    assert split_into_points(comment) == points


def test_very_long_ones() -> None:
    found = split_into_points("It waits for a long time. " * 10_000)
    assert len(found) == MAX_POINTS
    assert [len(point) for point in split_into_points("a" * 100_000)] == [MAX_POINT_LENGTH]
    assert split_into_points("a." * 50_000)  # quick, too
    assert split_into_points(", but" * 20_000) == []
