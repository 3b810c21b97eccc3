"""Marks by agent step: unmarked is unknown, the shared beginning is said of both, the first error is the earliest."""

import pytest

from apps.annotation.corrections import offered_tools
from apps.annotation.feedback_types.step import STEP
from apps.annotation.presentation import PresentedItem
from apps.core.errors import DomainError
from apps.trajectories.models import Trajectory

PAIR = [Trajectory(pk=1, agent_step_count=5), Trajectory(pk=2, agent_step_count=3)]
LABELS = PresentedItem(PAIR, (1, 0))  # left is the second, which has three steps
FIRST = PresentedItem(PAIR, (1, 0), options={"step": {"mark": "first_error"}})


def test_labels_and_corrections_there_and_back() -> None:
    said = {"step-left-2": "bad", "step-left-2-correction": "Ask first.", "step-right-4": "good"}
    rows = STEP.parse({**said, "step-right-0": ""}, LABELS)
    assert [(row.trajectory_id, row.labels, row.corrections) for row in rows] == [
        (2, {"2": "bad"}, {"2": "Ask first."}),
        (1, {"4": "good"}, {}),
    ]
    assert STEP.form_values(rows, LABELS) == said
    assert STEP.summary(rows, LABELS) == "A: 1 bad; B: 1 good"


def test_what_both_begin_with_is_said_of_both() -> None:
    rows = STEP.parse({"step-both-0": "good", "step-right-1": "bad"}, LABELS)
    assert [(row.trajectory_id, row.labels) for row in rows] == [
        (2, {"0": "good"}),
        (1, {"0": "good", "1": "bad"}),
    ]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"step-left-3": "good"}, "agent steps are 0 to 2"),
        ({"step-left-0": "fine"}, "Unknown label"),
        (
            {"step-left-1-correction": "Ask first."},
            "Agent step 1 of A has a correction but no label; choose a label",
        ),
    ],
)
def test_marks_that_cannot_be_are_refused(said: dict[str, str], message: str) -> None:
    with pytest.raises(DomainError, match=message):
        STEP.parse(said, LABELS)


def test_the_first_error_there_and_back() -> None:
    said = {"first-left": "2", "first-right": "none"}
    rows = STEP.parse(said, FIRST)
    assert [(row.trajectory_id, row.has_first_error, row.first_error) for row in rows] == [
        (2, True, 2),
        (1, True, None),
    ]
    assert STEP.form_values(rows, FIRST) == said
    assert STEP.summary(rows, FIRST) == "A: first error at step 2; B: no error"


def test_an_error_both_begin_with_is_the_first_of_both() -> None:
    rows = STEP.parse({"first-both": "1", "first-left": "2", "first-right": "none"}, FIRST)
    assert [row.first_error for row in rows] == [1, 1]


def test_how_much_must_be_said() -> None:
    STEP.validate([], LABELS, False)
    with pytest.raises(DomainError, match="at least one step"):
        STEP.validate([], LABELS, True)
    with pytest.raises(DomainError, match="first error in B"):
        STEP.validate(STEP.parse({"first-left": "0"}, FIRST), FIRST, False)


@pytest.mark.parametrize("step", ["3", "-1", "٢", "2.0", "9" * 5000])
def test_a_first_error_that_is_no_step_is_refused(step: str) -> None:
    with pytest.raises(DomainError, match="agent steps are 0 to 2"):
        STEP.parse({"first-left": step, "first-right": "none"}, FIRST)


TOOLS = [
    {"name": "find", "description": "Finds an order.", "input_schema": {
        "type": "object", "required": ["id"], "additionalProperties": False,
        "properties": {"id": {"type": "integer", "description": "of the order"}, "full": {"enum": [True, False]}},
    }},
]  # fmt: skip
DEFINED = PresentedItem([Trajectory(pk=1, agent_step_count=3, metadata={"tools": TOOLS})], (0,))
CALLED = PresentedItem([Trajectory(pk=1, agent_step_count=3, tools=["search"])], (0,))
NO_TOOLS = PresentedItem([Trajectory(pk=1, agent_step_count=3, tools=[])], (0,))
BAD = {"step-left-1": "bad"}


def call(name: str, arguments: str, step: int = 1) -> dict[str, str]:
    return {f"step-left-{step}-tool": name, f"step-left-{step}-arguments": arguments}


def test_a_call_as_a_correction_there_and_back() -> None:
    said = BAD | call("find", '{"id": 7}') | {"step-left-1-correction": "I look it up."}
    (row,) = STEP.parse(said, DEFINED)
    assert row.corrections == {
        "1": {"text": "I look it up.", "tool_calls": [{"name": "find", "arguments": {"id": 7}}]}
    }
    assert STEP.form_values([row], DEFINED) == said
    (row,) = STEP.parse(BAD | call("search", ""), CALLED)
    assert row.corrections == {"1": {"tool_calls": [{"name": "search", "arguments": {}}]}}


@pytest.mark.parametrize(
    ("fields", "shown", "message", "field"),
    [
        (call("find", "{id: 7}"), DEFINED, "Arguments of find: not valid JSON: .* at line 1", "arguments"),
        (call("find", "[7]"), DEFINED, "arguments are a JSON object, such as .*, and this is an array", "arguments"),
        (call("find", ""), DEFINED, "do not fit its parameters: id is missing", "arguments"),
        (call("find", '{"id": "7"}'), DEFINED, "id: expected a whole number, got a string", "arguments"),
        (call("find", '{"id": 7, "x": 1}'), DEFINED, "x is not a parameter; there are id, full", "arguments"),
        (call("find", '{"id": 7, "id": 8}'), DEFINED, "the key 'id' twice", "arguments"),
        (call("find", '{"a": "' + "x" * 20_000 + '"}'), DEFINED, "at most 20000 characters", "arguments"),
        (call("book", "{}"), DEFINED, "'book' is not a tool of the trajectory; its tools are find", "tool"),
        (call("find", "{}"), CALLED, "its tools are search", "tool"),
        (call("find", "{}"), NO_TOOLS, "no tools, .* write the correction as text", "tool"),
        (call("find", '{"id": 1e999}'), DEFINED, "a number that is too large to be stored", "arguments"),
        (call("find", '{"a":[' + "1," * 9_000 + "1]}"), DEFINED, "at most 20000 characters", "arguments"),
        (call("", '{"id": 7}'), DEFINED, "arguments but no tool; choose the tool", "tool"),
        ({"step-left-1-correction": "x" * 20_001}, DEFINED, "at most 20000 characters", "correction"),
    ],
)  # fmt: skip
def test_a_call_that_cannot_be_is_refused(
    fields: dict[str, str], shown: PresentedItem, message: str, field: str
) -> None:
    with pytest.raises(DomainError, match=message) as refused:
        STEP.parse(BAD | fields, shown)
    assert refused.value.pointer == f"/step-left-1-{field}"


def test_the_first_error_can_have_a_correction() -> None:
    asked = PresentedItem(DEFINED.trajectories, (0,), options={"step": {"mark": "first_error"}})
    said = {"first-left": "2"} | call("find", '{"id": 7}', 2)
    (row,) = STEP.parse(said, asked)
    assert list(row.corrections) == ["2"]
    assert STEP.form_values([row], asked) == said
    with pytest.raises(
        DomainError, match="Agent step 1 has a correction, and you marked agent step 2 as the first error"
    ):
        STEP.parse(said | {"step-left-1-correction": "Ask."}, asked)
    with pytest.raises(DomainError, match="and you marked no error; mark agent step 2, or delete"):
        STEP.parse(said | {"first-left": "none"}, asked)
    with pytest.raises(DomainError, match="the first error is not marked; mark agent step 2") as refused:
        STEP.parse(said | {"first-left": ""}, asked)
    assert refused.value.pointer == "/step-left-2-correction"


def test_what_a_tool_is_offered_with() -> None:
    (tool,) = offered_tools(DEFINED.trajectories[0])
    assert (tool.name, tool.about, tool.template) == ("find", "Finds an order.", '{\n "id": 0\n}')
    assert [(each.name, each.kind, each.is_required) for each in tool.parameters] == [
        ("id", "integer", True),
        ("full", "true or false", False),
    ]
    assert [each.name for each in offered_tools(CALLED.trajectories[0])] == ["search"]


def test_what_the_database_cannot_hold_is_replaced_in_arguments() -> None:
    (row,) = STEP.parse(BAD | call("search", '{"q": "a\\u0000b", "\\ud800": 1}'), CALLED)
    assert row.corrections["1"]["tool_calls"][0]["arguments"] == {"q": "a\ufffdb", "\ufffd": 1}


def test_a_call_at_a_shared_step_is_refused_with_the_trajectory() -> None:
    tools = [["find", "book"], ["find"]]
    pair = [Trajectory(pk=n, agent_step_count=3, tools=each) for n, each in enumerate(tools)]
    shown = PresentedItem(pair, (0, 1))
    said = {"step-both-0": "bad", "step-both-0-tool": "book"}
    with pytest.raises(DomainError, match="'book' is not a tool of trajectory B; its tools are find"):
        STEP.parse(said, shown)
    rows = STEP.parse(said | {"step-both-0-tool": "find"}, shown)
    assert [list(row.corrections) for row in rows] == [["0"], ["0"]]


def test_messages_stay_short_with_tools_from_strangers() -> None:
    many = PresentedItem(
        [Trajectory(pk=1, agent_step_count=3, tools=["n" * 500 + str(n) for n in range(99)])], (0,)
    )
    with pytest.raises(DomainError, match="and 69 more") as refused:
        STEP.parse(BAD | call("x" * 5000, "{}"), many)
    assert len(refused.value.message) < 4000
