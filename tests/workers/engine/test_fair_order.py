"""Turns by numbers: one caller in order, two by halves, keys within their project's part."""

from workers.engine.fair_order import FairOrder


def drained(fair: FairOrder, work: list[tuple[str, str]], tokens: int = 10) -> list[tuple[str, str]]:
    turns = sorted((fair.put(caller, tokens), number, caller) for number, caller in enumerate(work))
    for turn, _, caller in turns:
        fair.take(caller, tokens, turn)
    assert fair.queued == 0
    return [caller for _, _, caller in turns]


def test_one_caller_is_served_in_order() -> None:
    fair = FairOrder()
    turns = [fair.put(("a", "k"), tokens) for tokens in (5, 0, 100, 1)]
    assert turns == sorted(turns)
    assert len(set(turns)) == 4


def test_projects_take_turns_however_long_one_waits() -> None:
    work = [("a", "k")] * 50 + [("b", "k")] * 5
    assert drained(FairOrder(), work)[:10].count(("b", "k")) == 5


def test_the_keys_of_a_project_share_its_part() -> None:
    fair = FairOrder()
    for key in ("1", "2", "3", "4"):
        fair.put(("a", key), 0)
    work = [("a", key) for key in ("1", "2", "3", "4")] * 25 + [("b", "k")] * 25
    first = _order(fair, work)[:40]
    assert 17 <= first.count(("b", "k")) <= 23


def _order(fair: FairOrder, work: list[tuple[str, str]]) -> list[tuple[str, str]]:
    turns = sorted((fair.put(caller, 10), number, caller) for number, caller in enumerate(work))
    return [caller for _, _, caller in turns]


def test_room_is_left_for_others() -> None:
    fair = FairOrder()
    assert fair.has_room(("a", "k"), 10**9, 100)  # nothing waits
    fair.put(("a", "k"), 100)
    assert not fair.has_room(("a", "k"), 1, 100)
    assert fair.has_room(("b", "k"), 50, 100)
    assert fair.has_room(("b", "k"), 100, 100)
    fair.put(("b", "k"), 50)
    assert fair.has_room(("c", "k"), 50, 100)
    assert not fair.has_room(("c", "k"), 51, 100)
