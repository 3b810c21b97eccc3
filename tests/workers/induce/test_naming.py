"""Names made of people's words."""

from workers.induce.metric_report import MAX_NAME_LENGTH, name_metrics


def test_the_words_that_set_a_group_apart() -> None:
    first = ["It never checked the order.", "No check of the order.", "Did not check the order at all."]
    second = ["The order was rude.", "Rude about the order.", "So rude."]
    names = name_metrics([first, second])
    assert "check" in names[0]
    assert names[1].startswith("rude")


def test_names_differ_and_are_short() -> None:
    names = name_metrics([["slow"], ["slow"], [f"{'x' * 100}"], ["the and of"], []])
    assert len(set(names)) == 5
    assert all(0 < len(name) <= MAX_NAME_LENGTH + 5 for name in names)
