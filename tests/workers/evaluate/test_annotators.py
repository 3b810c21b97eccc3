"""Leave-one-out: one annotator against the majority of the others, by hand."""

import msgspec

from workers.evaluate.annotators import leave_one_out


def scored_records(make_preference, number: int, **choices: str) -> list:
    return [make_preference(number, annotator=name, choice=choice) for name, choice in choices.items()]


def test_three_annotators_of_whom_one_differs(make_preference) -> None:
    """ann and bob have no majority against them (a and b once each), cem stands against two: 0 of 1."""
    found = leave_one_out(scored_records(make_preference, 0, annotator="a", bob="a", cem="b"))
    assert found is not None
    assert (found["leave_one_out"], found["n"]) == (0.0, 1)


def test_all_of_one_mind(make_preference) -> None:
    found = leave_one_out(scored_records(make_preference, 0, annotator="tie", bob="tie", cem="tie"))
    assert found is not None
    assert (found["leave_one_out"], found["n"]) == (1.0, 3)


def test_four_annotators_over_two_items(make_preference) -> None:
    """Item 0: three of a, one of b: 3 right of 4. Item 1: all b: 4 of 4."""
    records = scored_records(make_preference, 0, annotator="a", bob="a", cem="a", dan="b")
    records += scored_records(make_preference, 2, annotator="b", bob="b", cem="b", dan="b")
    found = leave_one_out(records)
    assert found is not None
    assert (found["leave_one_out"], found["n"]) == (7 / 8, 8)
    assert found["interval"][0] <= 7 / 8 <= found["interval"][1]


def test_two_are_too_few(make_preference) -> None:
    assert leave_one_out(scored_records(make_preference, 0, annotator="a", bob="a")) is None


def test_sides_swapped_are_the_same_item(make_preference) -> None:
    """Records 0 and its mirror image: the same two trajectories, the other way round."""
    record = make_preference(0, annotator="cem", choice="b")
    mirrored = msgspec.structs.replace(record, a=record.b, b=record.a)
    found = leave_one_out([*scored_records(make_preference, 0, annotator="a", bob="a"), mirrored])
    assert found is not None
    assert (found["leave_one_out"], found["n"]) == (1.0, 3)


def test_who_judges_twice_counts_once(make_preference) -> None:
    records = scored_records(make_preference, 0, annotator="b", bob="a", cem="a") + scored_records(
        make_preference, 0, annotator="a"
    )
    found = leave_one_out(records)
    assert found is not None
    assert (found["leave_one_out"], found["n"]) == (1.0, 3)


def test_criteria_are_apart(make_preference) -> None:
    records = scored_records(make_preference, 0, annotator="a", bob="a")
    records.append(make_preference(0, annotator="cem", choice="a", criterion="polite"))
    assert leave_one_out(records) is None
