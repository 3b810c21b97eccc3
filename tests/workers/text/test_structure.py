import math
import subprocess
import sys
from collections import Counter
from types import FrameType
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.schema import ObservationResult, Part, Step, Task, ToolCall, Trajectory
from workers.schema.records import Source
from workers.text import overlap
from workers.text.structure import MAX_CHARACTERS, NAMES, structure

COUNTED_1, COUNTED_2, COUNTED_3 = 1 / 3, math.log2(3) / 3, 2 / 3


def text_step(source: Source, text: str, **more: Any) -> Step:
    return Step(source=source, message=(Part(text=text),), **more)


def call_step(name: str, arguments: dict[str, Any], observation: str | None = None, text: str = "") -> Step:
    seen = () if observation is None else (ObservationResult(content=(Part(text=observation),)),)
    message = (Part(text=text),) if text else ()
    call = ToolCall(name=name, arguments=arguments)
    return Step(source="agent", message=message, tool_calls=(call,), observation=seen)


def read_rows(*steps: Step) -> list[dict[str, float]]:
    features = structure(Trajectory(steps=steps, task=Task(id="t")))
    assert features.dtype == np.float32
    return [dict(zip(NAMES, row, strict=True)) for row in features.tolist()]


def read_answer(text: str, question: str = "Question") -> dict[str, float]:
    return read_rows(text_step("user", question), text_step("agent", text))[-1]


def nonzero(row: dict[str, float]) -> set[str]:
    return {name for name, value in row.items() if value}


def test_names_are_distinct() -> None:
    assert len(set(NAMES)) == len(NAMES)


def test_no_agent_step_has_no_rows() -> None:
    features = structure(Trajectory(steps=(text_step("user", "Hello"),), task=Task(id="t")))
    assert features.shape == (0, len(NAMES))


def test_an_empty_step_counts_as_a_step_and_as_empty() -> None:
    (row,) = read_rows(Step(source="agent"))
    assert nonzero(row) == {"bias", "first", "empty"}
    assert nonzero(read_answer("")) == {"bias", "first", "empty"}


def test_a_row_of_numbers_has_a_bias() -> None:
    rows = read_rows(*[Step(source="agent", features=(1.0, 2.0))] * 2)
    assert [row["bias"] for row in rows] == [1, 1]


def test_lengths() -> None:
    row = read_answer("One two three. Four five\nsix!")
    assert row["words"] == pytest.approx(math.log(7) / 8)
    assert row["sentences"] == pytest.approx(math.log(4) / 8)
    assert row["sentence_words"] == pytest.approx(math.log(3) / 8)
    assert row["lines"] == pytest.approx(math.log(2) / 8)
    assert row["word_length"] == pytest.approx(22 / 6 / 16)
    assert row["first"] == row["speaks"] == 1
    assert row["unfinished"] == row["place"] == 0


def test_reasoning_has_its_length_only() -> None:
    row = read_rows(Step(source="agent", reasoning="I am sorry, maybe?"))[0]
    assert row["reasoning_words"] == pytest.approx(math.log(5) / 8)
    assert nonzero(row) == {"bias", "first", "empty", "reasoning_words"}


def test_overlap_with_the_context() -> None:
    row = read_answer("Paris lies on the Seine. Rome burns daily.", "Paris lies near the river Seine.")
    assert row["words_given"] == pytest.approx(4 / 8)  # paris, lies, the, seine
    assert row["bigrams_given"] == pytest.approx(1 / 7)  # paris lies
    assert row["trigrams_given"] == 0
    assert row["content_given"] == pytest.approx(3 / 6)
    assert (row["sentence_max"], row["sentence_min"], row["sentence_mean"]) == (1, 0, 0.5)
    assert (row["sentences_given"], row["sentences_new"]) == (0.5, 0.5)
    assert row["context_covered"] == row["heard_used"] == pytest.approx(3 / 5)  # near, river are not used


def test_numbers_and_names() -> None:
    row = read_answer("It was 3.5 km in 1990, says Anna Smith of Bonn. Bonn has 7.", "Anna ran 3.5 km.")
    assert row["numbers_given"] == pytest.approx(COUNTED_1)
    assert row["numbers_new"] == pytest.approx(COUNTED_2)  # 1990, 7
    assert row["names_given"] == pytest.approx(COUNTED_1)
    assert row["names_new"] == pytest.approx(COUNTED_2)  # Smith, Bonn
    assert row["number_share"] == pytest.approx(3 / 14)


def test_repetition_of_own_text_is_not_overlap_with_the_context() -> None:
    first, second = read_rows(
        text_step("user", "zero"), text_step("agent", "red green blue"), text_step("agent", "red green gold")
    )
    assert first["words_own"] == first["bigrams_own"] == 0
    assert second["words_own"] == pytest.approx(2 / 3)
    assert second["bigrams_own"] == pytest.approx(1 / 2)
    assert second["trigrams_own"] == second["words_given"] == second["message_repeated"] == 0
    assert read_answer("a b c a b c")["trigrams_within"] == pytest.approx(1 / 4)


def test_the_context_is_covered_once() -> None:
    steps = (text_step("user", "alpha beta gamma delta"), text_step("agent", "alpha beta"))
    first, second = read_rows(*steps, text_step("agent", "alpha gamma"))
    assert first["context_covered"] == 0.5
    assert second["context_covered"] == 0.25
    assert second["heard_used"] == 0.5


def test_calls() -> None:
    rows = read_rows(
        text_step("user", "Find order 17"),
        call_step("find", {"order": 17}, "nothing"),
        call_step("find", {"order": 18}, "nothing"),
        call_step("find", {"order": 17}, "a row", text="Again."),
    )
    assert [row["calls"] for row in rows] == pytest.approx([COUNTED_1] * 3)
    assert [row["call_repeated"] for row in rows] == [0, 0, 1]
    assert [row["tool_repeated"] for row in rows] == [0, 1, 1]
    assert [row["observation_repeated"] for row in rows] == [0, 1, 0]
    assert [row["arguments_known"] for row in rows] == [1, 0.5, 1]
    assert [row["speaks"] for row in rows] == [0, 0, 1]
    assert [row["place"] for row in rows] == pytest.approx([0, math.log(2) / 8, math.log(3) / 8])
    assert rows[0]["observation_words"] == pytest.approx(math.log(2) / 8)
    assert rows[0]["argument_words"] == pytest.approx(math.log(3) / 8)


@pytest.mark.parametrize(
    ("observation", "found"),
    [
        ("Error: invalid id", {"error_words"}),
        ("3 passed, 0 failed, no errors", set()),
        ("Traceback (most recent call last)\nValueError: x", {"exceptions"}),
        ("exit code: 1", {"exit_codes"}),
        ("<returncode>2</returncode>", {"exit_codes"}),
        ("exit code: 0", set()),
        ("HTTP/1.1 503", {"http_errors"}),
        ("status_code=404", {"http_errors"}),
        ("HTTP/1.1 200 and 404 rows", set()),
        ("ls: no such file", {"not_found"}),
        ("User not found", {"not_found"}),
    ],
)
def test_failures_in_an_observation(observation: str, found: set[str]) -> None:
    row = read_rows(call_step("run", {}, observation))[0]
    kinds = ("error_words", "exceptions", "exit_codes", "http_errors", "not_found")
    assert {kind for kind in kinds if row[f"observation_{kind}"]} == found
    assert row["observation_failed"] == bool(found)


def test_failures_in_a_row_and_retries() -> None:
    rows = read_rows(
        call_step("run", {"a": 1}, "error"),
        text_step("agent", "I will try again."),
        call_step("run", {"a": 2}, "error"),
        call_step("look", {}, "fine"),
        call_step("run", {"a": 3}, ""),
    )
    assert [row["failures_in_a_row"] for row in rows] == pytest.approx([COUNTED_1, 0, COUNTED_2, 0, 0])
    assert [row["retried_failure"] for row in rows] == [0, 0, 1, 0, 0]
    assert [row["observation_empty"] for row in rows] == [0, 0, 0, 0, 1]
    assert [row["intent_without_call"] for row in rows] == [0, 1, 0, 0, 0]


def test_what_was_heard_since_the_last_step() -> None:
    first, second = read_rows(
        text_step("user", "An error in the task"),
        text_step("agent", "run(x)"),
        text_step("environment", "NameError: x"),
        text_step("agent", "ok"),
    )
    assert (first["heard_failed"], first["heard_words"]) == (0, 0)
    assert (second["heard_failed"], second["heard_words"]) == (1, pytest.approx(math.log(3) / 8))


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("I can't help with that.", "refusals", COUNTED_1),
        ("I am unable to. I won’t.", "refusals", COUNTED_2),
        ("Maybe it is; it might be; perhaps.", "hedges", COUNTED_3),
        ("Sorry, I apologize.", "apologies", COUNTED_2),
        ("I don't know.", "unknowns", COUNTED_1),
        ("Yes, you're right.", "agreement", COUNTED_2),
        ("Thank you", "thanks", COUNTED_1),
        ("Wait, let me recheck.", "corrections", COUNTED_2),
        ("Would you like this?", "requests", COUNTED_1),
        ("The answer is 4.", "final_marks", COUNTED_1),
        ("Who? Where?", "questions", COUNTED_2),
        ("No!", "exclamations", COUNTED_1),
        ("- one\n* two", "bullets", COUNTED_2),
        ("1. one\n 2) two", "numbered", COUNTED_2),
        ("# One\n## Two", "headings", COUNTED_2),
        ("**bold**", "bold", COUNTED_1),
        ("```\nx\n```", "code_blocks", COUNTED_2),
        ("see https://example.org", "urls", COUNTED_1),
        ("a | b\n| c | d |", "table_rows", COUNTED_1),
        ("OK NO yes", "uppercase_words", 2 / 3),
        ("naïve", "non_ascii", 1 / 5),
        ("it ends in the", "unfinished", 1),
        ("Does it?", "ends_with_question", 1),
        ("?" * 7, "questions", 1),
        ("?" * 700, "questions", 1),
    ],
)
def test_form(text: str, name: str, value: float) -> None:
    assert read_answer(text)[name] == pytest.approx(value)
    assert name not in nonzero(read_answer("Plain words follow."))


texts = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.sampled_from(
            ["error", "Paris", "3.5", "the", ".", "?", "\n", "I can't", "sorry", "- ", "\ud800", "ß", "İ"]
        ),
        max_size=20,
    ).map(" ".join),
)
agent_steps = st.builds(
    lambda text, reasoning, calls, seen: Step(
        source="agent",
        message=(Part(text=text),),
        reasoning=reasoning,
        tool_calls=tuple(ToolCall(name=name, arguments={"x": value}) for name, value in calls),
        observation=tuple(ObservationResult(content=(Part(text=value),)) for value in seen),
    ),
    texts,
    texts,
    st.lists(st.tuples(st.sampled_from(["run", "find"]), texts), max_size=2),
    st.lists(texts, max_size=2),
)
other_steps = st.builds(text_step, st.sampled_from(["user", "environment", "system"]), texts)
any_steps = st.lists(st.one_of(agent_steps, other_steps), max_size=8)


@settings(max_examples=100, deadline=None)
@given(any_steps, any_steps)
def test_later_steps_change_nothing(before: list[Step], after: list[Step]) -> None:
    task = Task(id="t")
    early = structure(Trajectory(steps=tuple(before), task=task))
    both = structure(Trajectory(steps=(*before, *after), task=task))
    np.testing.assert_array_equal(both[: len(early)], early)
    assert np.isfinite(both).all() and both.min(initial=0) >= 0 and both.max(initial=0) <= 1
    assert (both[:, NAMES.index("bias")] == 1).all()


@settings(max_examples=150, deadline=None)
@given(any_steps)
def test_short_and_long_trajectories_are_counted_alike(steps: list[Step]) -> None:
    trajectory = Trajectory(steps=tuple(steps), task=Task(id="t"))
    with patch.object(overlap, "MOST_SHORT_WORDS", -1):
        long = structure(trajectory)
    np.testing.assert_array_equal(structure(trajectory), long)


@pytest.mark.parametrize(
    "text",
    [
        *("a" * MAX_CHARACTERS, "error " * 175_000, "?" * MAX_CHARACTERS, "- \n" * 350_000),
        *(
            "1,1." * 250_000,
            "\ud800 **" * 200_000,
            "\n" * MAX_CHARACTERS,
            "I can't " * 120_000,
            "ß" * 500_000,
        ),
    ],
    ids=lambda text: repr(text[:8]),
)
def test_hostile_texts_stay_in_bounds(text: str) -> None:
    rows = read_rows(
        text_step("user", text), call_step("run", {"x": text}, text, text=text), text_step("agent", text)
    )
    assert all(0 <= value < 2 for row in rows for value in row.values())


def test_what_is_beyond_the_limit_is_not_read() -> None:
    text = "x " * (MAX_CHARACTERS // 2)
    assert read_answer(text) == read_answer(text + "Why? 17")


def _count_lines(steps: tuple[Step, ...]) -> int:
    """Lines of Python that run in `workers.text`."""
    counts: Counter[str] = Counter()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if "/workers/text/" not in frame.f_code.co_filename:
            return None
        counts[event] += 1
        return trace

    trajectory, before = Trajectory(steps=steps, task=Task(id="t")), sys.gettrace()
    sys.settrace(trace)
    try:
        structure(trajectory)
    finally:
        sys.settrace(before)
    return counts["line"]


@pytest.mark.parametrize("kind", ["long", "many"])
def test_work_grows_with_the_text_and_no_faster(kind: str) -> None:
    def build(size: int) -> tuple[Step, ...]:
        if kind == "long":
            words = " ".join(f"w{number}. Is it so?" for number in range(size))
            return (text_step("user", words), text_step("agent", words))
        pair = (text_step("user", "Do it again?"), call_step("run", {"x": 1}, "error", text="Sorry, again."))
        return pair * size

    small, large = _count_lines(build(40)), _count_lines(build(160))
    assert large <= 4 * small


def test_torch_is_not_imported() -> None:
    command = "import sys, workers.text.structure; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", command], check=False).returncode == 0
