"""Names made of people's words."""

from workers.induce.naming import LONGEST, names_of


def test_the_words_that_set_a_group_apart() -> None:
    first = ["It never checked the order.", "No check of the order.", "Did not check the order at all."]
    second = ["The order was rude.", "Rude about the order.", "So rude."]
    names = names_of([first, second])
    assert "check" in names[0]
    assert names[1].startswith("rude")


def test_names_differ_and_are_short() -> None:
    names = names_of([["slow"], ["slow"], [f"{'x' * 100}"], ["the and of"], []])
    assert len(set(names)) == 5
    assert all(0 < len(name) <= LONGEST + 5 for name in names)
