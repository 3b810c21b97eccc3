"""Corrections of steps: what they say, the pairs that they make, and the trajectory up to the first error."""

from typing import Any

import msgspec
import pytest

from workers.schema import (
    ObservationResult,
    Part,
    Step,
    StepCorrection,
    StepLabelRecord,
    Task,
    ToolCall,
    Trajectory,
)
from workers.schema.step_corrections import (
    EQUAL,
    NO_STEP,
    REPEATED,
    WEIGHTLESS,
    correction_text,
    first_error,
    revised_trajectory,
    step_pairs,
)

CALL = StepCorrection(text="Looking.", tool_calls=(ToolCall(name="find", arguments={"id": 7}),))


def agent(text: str) -> Step:
    seen = ObservationResult(content=(Part(text="done"),))
    return Step(source="agent", message=(Part(text=text),), reasoning="Hm.", observation=(seen,))


ASK = Step(source="user", message=(Part(text="Where is it?"),))
RUN = Trajectory(
    steps=(ASK, agent("one"), agent("two"), agent("three")),
    task=Task(id="t"),
    metadata={"tools": [{"name": "find"}]},
    success=False,
)


def labelled(**fields: Any) -> StepLabelRecord:
    return StepLabelRecord(trajectory=RUN, annotator="ann", **fields)


def test_a_correction_is_text_or_a_call() -> None:
    assert correction_text("Ask first.") == "Ask first."
    assert correction_text(CALL) == 'Looking.\nfind({"id": 7})'
    written = msgspec.json.encode(labelled(corrections={1: CALL, 2: "Ask first."}))
    read = msgspec.json.decode(written, type=StepLabelRecord)
    assert read.corrections == {1: CALL, 2: "Ask first."}


def test_a_pair_is_the_same_beginning_and_the_two_steps_alone() -> None:
    found = step_pairs([labelled(corrections={1: CALL}, weight=0.5, item="i")], weight=2.0)
    (pair,) = found.pairs
    corrected, original = pair.comparison.a, pair.comparison.b
    assert corrected.steps[:-1] == original.steps[:-1] == RUN.steps[:2]
    assert (corrected.steps[-1].text, corrected.steps[-1].tool_calls) == ("Looking.", CALL.tool_calls)
    assert original.steps[-1].text == "two"
    ends = (corrected.steps[-1], original.steps[-1])
    assert [(end.reasoning, end.observation) for end in ends] == [(None, ()), (None, ())]
    assert (pair.comparison.choice, pair.comparison.annotator, pair.comparison.weight) == ("a", "ann", 1.0)
    assert corrected.metadata == RUN.metadata and corrected.success is None
    assert not found.skipped


def test_what_makes_no_pair_is_counted_by_reason() -> None:
    records = [
        labelled(corrections={0: "one", 1: "Better.", 9: "Too late."}),
        labelled(corrections={1: "Better."}),
        labelled(corrections={2: "Other."}, weight=0.0),
        labelled(labels={0: "bad"}),
    ]
    found = step_pairs(records, weight=1.0)
    assert [pair.source for pair in found.pairs] == [records[0]]
    assert found.skipped == {EQUAL: 1, NO_STEP: 1, REPEATED: 1, WEIGHTLESS: 1}


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"labels": {0: "good", 1: "bad", 2: "bad"}}, 1),
        ({"labels": {0: "good"}}, None),
        ({"has_first_error": True, "first_error": 2, "labels": {1: "bad"}}, 2),
        ({"has_first_error": True}, None),
    ],
)
def test_the_first_error(fields: dict[str, Any], error: int | None) -> None:
    record = labelled(**fields, corrections=dict.fromkeys(range(3), CALL))
    assert first_error(record) == error
    revised = revised_trajectory(record)
    assert (revised is None) == (error is None)
    if revised is not None and error is not None:
        assert revised.steps[:-1] == RUN.steps[: error + 1]
        assert revised.steps[-1].tool_calls == CALL.tool_calls


def test_no_revised_trajectory_without_a_correction_of_the_first_error() -> None:
    labels = {1: "bad", 2: "bad"}
    assert revised_trajectory(labelled(labels=labels, corrections={2: CALL})) is None
    assert revised_trajectory(labelled(labels=labels, corrections={1: "two"})) is None, (
        "it says what the step was"
    )
