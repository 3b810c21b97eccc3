"""Alignment: the common beginning, equal steps found again, similar ones beside each other, nothing lost."""

from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from apps.trajectories.alignment import Alignment, Row, align
from tests.trajectories.edits import edited
from workers.schema import ObservationResult, Part, Step, ToolCall


def say(text: str, source: str = "agent") -> Step:
    return Step(source=source, message=(Part(text=text),))  # type: ignore[arg-type]


def call(name: str, argument: str, *, call_id: str = "x", result: str = "ok") -> Step:
    observation = ObservationResult(call_id=call_id, content=(Part(text=result),))
    return Step(
        source="agent",
        tool_calls=(ToolCall(name=name, arguments={"q": argument}, id=call_id),),
        observation=(observation,),
    )


def test_equal_runs_are_all_prefix() -> None:
    steps = [say("hello", "user"), say("hi")]
    assert align(steps, steps) == Alignment(2, ())
    assert align(steps, steps).first_difference is None


def test_a_common_beginning_then_a_difference() -> None:
    left = [say("hello", "user"), say("hi"), say("no")]
    right = [say("hello", "user"), say("hi"), say("yes")]
    assert align(left, right) == Alignment(2, (Row((2, 2), True, changed=True),))


def test_ids_of_calls_do_not_matter_but_results_do() -> None:
    assert align([call("find", "a", call_id="1")], [call("find", "a", call_id="2")]).prefix == 1
    assert align([call("find", "a")], [call("find", "a", result="error")]).prefix == 0


def test_reasoning_that_differs_is_a_difference() -> None:
    one, other = Step(source="agent", reasoning="a"), Step(source="agent", reasoning="b")
    assert align([one], [other]).differences == [0]


def test_equal_steps_after_an_extra_one_are_found_again() -> None:
    left = [say("a"), call("find", "x"), say("b"), say("c")]
    right = [say("a"), say("b"), say("c")]
    assert align(left, right) == Alignment(1, (Row((1, None), True), Row((2, 1), False), Row((3, 2), False)))


def test_similar_steps_stand_beside_each_other() -> None:
    left = [call("find", "x"), call("book", "1"), say("done")]
    right = [call("book", "2"), say("finished")]
    assert align(left, right).rows == (
        Row((0, None), True),
        Row((1, 0), True, changed=True),
        Row((2, 1), True, changed=True),
    )


def test_one_longer_than_the_other() -> None:
    assert align([say("a")], [say("a"), say("b")]) == Alignment(1, (Row((None, 1), True),))
    assert align([], []) == Alignment(0, ())


def test_very_long_runs_go_in_order() -> None:
    left, right = [say(f"l{n}") for n in range(2100)], [say(f"r{n}") for n in range(2000)]
    rows = align(left, right).rows
    assert (rows[0], len(rows)) == (Row((0, 0), True), 2100)
    assert rows[-1] == Row((2099, 1999), True, changed=True), "the final answers"


def test_long_runs_are_cut_where_steps_occur_once_in_both() -> None:
    left = [say(f"l{n}") for n in range(3100)]
    left[1500] = say("the same")
    right = [say(f"r{n}") for n in range(3000)]
    right[1000] = say("the same")
    rows = align(left, right).rows
    assert Row((1500, 1000), False) in rows


def test_steps_inserted_removed_and_changed_are_found() -> None:
    """Of made-up runs; of real ones by `benchmarks.alignment`."""
    random = Random(1)
    words = [f"word{number}" for number in range(400)]

    def step() -> Step:
        said, seen = (" ".join(random.choices(words, k=20)) for _ in range(2))
        return call(random.choice(["search", "book", "write"]), said, result=seen)

    right = of = 0
    for _ in range(20):
        steps = [say("do it", "user"), *(step() for _ in range(30))]
        one = edited(steps, [step() for _ in range(30)], 0.1, random)
        counts = one.right(align(steps, one.steps))
        right, of = right + counts[0], of + counts[1]
    assert of > 600
    assert right / of > 0.95


def test_of_equal_steps_the_one_with_the_same_neighbours_is_meant() -> None:
    left = [say("a"), call("wait", "1"), say("b"), say("a"), call("wait", "1"), say("c"), say("y")]
    right = [say("x"), call("wait", "1"), say("c"), say("z")]
    assert Row((4, 1), False) in align(left, right).rows


def test_final_answers_stand_beside_each_other() -> None:
    left = [call("find", "x"), call("track", "y"), call("cancel", "z"), say("It is cancelled.")]
    right = [call("find", "x"), say("Sorry, no.")]
    assert align(left, right).rows[-1] == Row((3, 1), True, changed=True)
    assert align(left[:-1], right).rows[-1].cells != (2, 1) or not align(left[:-1], right).rows[-1].changed


texts = st.lists(st.sampled_from("abcd").map(say), max_size=12)


@given(texts, texts)
def test_every_step_is_shown_once_and_in_order(left: list[Step], right: list[Step]) -> None:
    aligned = align(left, right)
    lefts = [row.cells[0] for row in aligned.rows if row.cells[0] is not None]
    rights = [row.cells[1] for row in aligned.rows if row.cells[1] is not None]
    assert lefts == list(range(aligned.prefix, len(left)))
    assert rights == list(range(aligned.prefix, len(right)))
    assert all(a < b for a, b in pairwise(aligned.differences))
    for row in aligned.rows:
        if not row.differs:
            assert row.cells[0] is not None and row.cells[1] is not None
            assert left[row.cells[0]] == right[row.cells[1]]


def test_one_run_stands_alone_and_more_than_two_go_in_order() -> None:
    one, two, three = [say("a"), say("b")], [say("a"), say("c")], [say("a")]
    assert align(one) == Alignment(0, (Row((0,), True), Row((1,), True)))
    assert align(one, two, three) == Alignment(1, (Row((1, 1, None), True),))
