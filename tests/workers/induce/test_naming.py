"""Names made of people's words."""

from workers.induce.metric_names import MAX_NAME_LENGTH, name_metrics


def test_a_name_is_a_phrase_of_a_comment() -> None:
    first = ["It checked the order twice.", "Nice check of the order.", "It checked the order first."]
    second = ["The tone was rude.", "A rude tone.", "It has a rude tone."]
    assert name_metrics([first, second]) == ["checked the order", "rude tone"]


def test_a_negation_stays_in_the_phrase() -> None:
    praised = ["It checked the order.", "It checked the order first."]
    blamed = ["It never checked the order.", "It did not check the order.", "It never checked the order."]
    names = name_metrics([praised, blamed])
    assert names[0] == "checked the order"
    assert names[1] == "never checked the order"


def test_the_words_that_set_a_group_apart() -> None:
    first = ["It never checked the order.", "No check of the order.", "Did not check the order at all."]
    second = ["The order was rude.", "Rude about the order.", "So rude."]
    names = name_metrics([first, second])
    assert "check" in names[0]
    assert "rude" in names[1]


def test_names_differ_and_are_short() -> None:
    names = name_metrics([["slow"], ["slow"], [f"{'x' * 100}"], ["the and of"], []])
    assert len(set(names)) == 5
    assert all(0 < len(name) <= MAX_NAME_LENGTH + 5 for name in names)
