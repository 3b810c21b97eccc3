"""Which trajectories the critic reads, how much of them, and what is taken for a quotation."""

from workers.programs.excerpts import excerpt, quotes, wrongly_paid
from workers.prompts.templates import quoted
from workers.schema import Trajectory, parse_item


def conversation(*contents: str) -> Trajectory:
    roles = ("user", "assistant")
    messages = [{"role": roles[place % 2], "content": content} for place, content in enumerate(contents)]
    found = parse_item({"messages": messages}).content
    assert isinstance(found, Trajectory)
    return found


def test_failed_ones_that_were_paid_and_successful_ones_that_were_not() -> None:
    about = [{"success": success} for success in (True, False, False, True, None, False)]
    assert wrongly_paid([5.0, 1.0, 9.0, 0.0, 99.0, 3.0], about) == [2, 5, 3, 0]
    assert wrongly_paid([1.0, 3.0, 2.0], [{"success": None}] * 3) == [1, 2, 0]
    assert wrongly_paid([1.0, 3.0], [{"success": True}] * 2) == [0, 1]
    assert wrongly_paid([], []) == []


def test_an_excerpt_is_short() -> None:
    for trajectory in (conversation(*["word " * 2000] * 40), conversation("a", "\u202e" * 20_000)):
        assert 0 < len(quoted(excerpt(trajectory))) < 8000
    (task, step, reply) = excerpt(conversation("Where is it?", "Here."))
    assert (set(task), step["said"], reply["said"]) == ({"task"}, "Where is it?", "Here.")


def test_six_words_in_a_row_are_a_quotation() -> None:
    excerpts = [excerpt(conversation("My parcel number is four seven eleven now.", "Thanks."))]
    assert quotes("It pays for: my parcel number, is FOUR seven.", excerpts, [])
    assert not quotes("It pays for parcel numbers of four to seven digits.", excerpts, [])
    assert not quotes("My parcel number is four seven", excerpts, ["my parcel number is four seven"])
    assert not quotes("My parcel number is four seven", [], [])
