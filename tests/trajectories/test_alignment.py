"""Alignment: the common beginning, equal steps found again, similar ones next to each other, nothing lost."""

from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from apps.trajectories.alignment import AlignedRow, Alignment, align_trajectories
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
    assert align_trajectories(steps, steps) == Alignment(2, (), prefix_agent_steps=1)
    assert align_trajectories(steps, steps).first_difference is None


def test_a_common_beginning_then_a_difference() -> None:
    left = [say("hello", "user"), say("hi"), say("no")]
    right = [say("hello", "user"), say("hi"), say("yes")]
    assert align_trajectories(left, right) == Alignment(
        2, (AlignedRow((2, 2), True, changed=True),), prefix_agent_steps=1
    )


def test_ids_of_calls_do_not_matter_but_results_do() -> None:
    assert align_trajectories([call("find", "a", call_id="1")], [call("find", "a", call_id="2")]).prefix == 1
    assert align_trajectories([call("find", "a")], [call("find", "a", result="error")]).prefix == 0


def test_reasoning_that_differs_is_a_difference() -> None:
    left_steps, other = Step(source="agent", reasoning="a"), Step(source="agent", reasoning="b")
    assert align_trajectories([left_steps], [other]).differences == [0]


def test_equal_steps_after_an_extra_one_are_found_again() -> None:
    left = [say("a"), call("find", "x"), say("b"), say("c")]
    right = [say("a"), say("b"), say("c")]
    assert align_trajectories(left, right) == Alignment(
        1,
        (AlignedRow((1, None), True), AlignedRow((2, 1), False), AlignedRow((3, 2), False)),
        prefix_agent_steps=1,
    )


def test_similar_steps_stand_beside_each_other() -> None:
    left = [call("find", "x"), call("book", "1"), say("done")]
    right = [call("book", "2"), say("finished")]
    assert align_trajectories(left, right).rows == (
        AlignedRow((0, None), True),
        AlignedRow((1, 0), True, changed=True),
        AlignedRow((2, 1), True, changed=True),
    )


def test_one_longer_than_the_other() -> None:
    assert align_trajectories([say("a")], [say("a"), say("b")]) == Alignment(
        1, (AlignedRow((None, 1), True),), prefix_agent_steps=1
    )
    assert align_trajectories([], []) == Alignment(0, ())


def test_very_long_runs_go_in_order() -> None:
    left, right = [say(f"l{n}") for n in range(2100)], [say(f"r{n}") for n in range(2000)]
    rows = align_trajectories(left, right).rows
    assert (rows[0], len(rows)) == (AlignedRow((0, 0), True), 2100)
    assert rows[-1] == AlignedRow((2099, 1999), True, changed=True), "the final answers"


def test_long_runs_are_cut_where_steps_occur_once_in_both() -> None:
    left = [say(f"l{n}") for n in range(3100)]
    left[1500] = say("the same")
    right = [say(f"r{n}") for n in range(3000)]
    right[1000] = say("the same")
    rows = align_trajectories(left, right).rows
    assert AlignedRow((1500, 1000), False) in rows


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
        left_steps = edited(steps, [step() for _ in range(30)], 0.1, random)
        counts = left_steps.right(align_trajectories(steps, left_steps.steps))
        right, of = right + counts[0], of + counts[1]
    assert of > 600
    assert right / of > 0.95


def test_of_equal_steps_the_one_with_the_same_neighbours_is_meant() -> None:
    left = [say("a"), call("wait", "1"), say("b"), say("a"), call("wait", "1"), say("c"), say("y")]
    right = [say("x"), call("wait", "1"), say("c"), say("z")]
    assert AlignedRow((4, 1), False) in align_trajectories(left, right).rows


def test_final_answers_stand_beside_each_other() -> None:
    left = [call("find", "x"), call("track", "y"), call("cancel", "z"), say("It is cancelled.")]
    right = [call("find", "x"), say("Sorry, no.")]
    assert align_trajectories(left, right).rows[-1] == AlignedRow((3, 1), True, changed=True)
    assert (
        align_trajectories(left[:-1], right).rows[-1].cells != (2, 1)
        or not align_trajectories(left[:-1], right).rows[-1].changed
    )


texts = st.lists(st.sampled_from("abcd").map(say), max_size=12)


@given(texts, texts)
def test_every_step_is_shown_once_and_in_order(left: list[Step], right: list[Step]) -> None:
    aligned = align_trajectories(left, right)
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
    left_steps, two, three = [say("a"), say("b")], [say("a"), say("c")], [say("a")]
    assert align_trajectories(left_steps) == Alignment(0, (AlignedRow((0,), True), AlignedRow((1,), True)))
    assert align_trajectories(left_steps, two, three) == Alignment(
        1, (AlignedRow((1, 1, None), True),), prefix_agent_steps=1
    )
