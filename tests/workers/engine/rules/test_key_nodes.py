"""Key nodes: which steps reach them, and what that pays."""

from typing import Any

import pytest

from workers.engine.rules import rate
from workers.engine.rules.key_nodes import reached_nodes, step_addresses
from workers.errors import InvalidRecord, RewardError
from workers.schema import ObservationResult, Part, ScoreInput, Step, Task, Text, ToolCall, Trajectory
from workers.schema.key_nodes import KeyNodes, node_values, read_key_nodes
from workers.schema.reference_parts import KeyNodeShare

PART = KeyNodeShare(name="k")


def call(name: str, seen: str = "", *, said: str = "", at: str = "", **arguments: Any) -> Step:
    result = ObservationResult(content=(Part(text=seen),), call_id="c", extra={"url": at} if at else {})
    return Step(
        source="agent",
        message=(Part(text=said),) if said else (),
        tool_calls=(ToolCall(name=name, arguments=arguments, id="c"),),
        observation=(result,),
    )


STEPS = (
    Step(source="user", message=(Part(text="refund order 7"),)),
    call("find_order", "order 7: paid", order=7),
    Step(source="agent", message=(Part(text="Shall I refund it?"),)),
    Step(source="environment", message=(Part(text="page loaded"),)),
    call("refund", "refunded 20", order=7, amount=20.0, at="https://shop.example/orders/7"),
)


def places(*nodes: dict[str, Any], in_order: bool = False) -> list[int | None]:
    found = read_key_nodes({"nodes": list(nodes), "in_order": in_order})
    return [each.step for each in reached_nodes(found, STEPS)]


@pytest.mark.parametrize(
    ("node", "place"),
    [
        ({"tools": ["refund"]}, 4),
        ({"tools": ["find_*"]}, 1),
        ({"tools": ["refund"], "when": [{"path": "amount", "at_most": 19}]}, None),
        ({"tools": ["refund"], "when": [{"path": "order", "one_of": [7]}]}, 4),
        ({"text": "order 7"}, 1),  # what the user said before is not the agent's
        ({"text": "page loaded"}, 3),
        ({"text": "Shall I"}, None),
        ({"text": "Shall I", "within": "said"}, 2),
        ({"text": "refunded", "within": "both"}, 4),
        ({"url": r"^https://shop\.example/orders/[0-9]+$"}, 4),
        ({"url": "shop", "text": "paid"}, None),  # both, in one turn
        ({"tools": ["find_order"], "text": "paid"}, 1),
    ],
)
def test_where_a_node_is_reached(node: dict[str, Any], place: int | None) -> None:
    assert places({"name": "n", **node}) == [place]


def test_in_order_a_node_counts_after_those_before_it() -> None:
    refund, find = {"name": "r", "tools": ["refund"]}, {"name": "f", "tools": ["find_order"]}
    assert places(refund, find) == [4, 1]
    assert places(refund, find, in_order=True) == [4, None]
    assert places(find, refund, in_order=True) == [1, 4]
    assert places({"name": "x", "tools": ["x"]}, find, in_order=True) == [None, None]
    same_step = [{"name": "a", "text": "order"}, {"name": "b", "text": "paid"}]
    assert places(*same_step, in_order=True) == [1, 1]


def test_an_expected_observation_is_compared_whatever_the_white_space() -> None:
    node = {"name": "r", "tools": ["refund"], "expected": "refunded\n20"}
    (same,) = reached_nodes(read_key_nodes([node]), STEPS)
    assert (same.observed, same.is_expected) == ("refunded 20", True)
    (other,) = reached_nodes(read_key_nodes([{**node, "expected": "refunded 25"}]), STEPS)
    assert (other.is_reached, other.is_expected) == (True, False)
    (missing,) = reached_nodes(read_key_nodes([{**node, "tools": ["cancel"]}]), STEPS)
    assert (missing.is_reached, missing.is_expected) == (False, None)


def test_each_step_is_paid_for_the_nodes_it_reaches() -> None:
    nodes: list[dict[str, Any]] = [
        {"name": "0", "tools": ["find_order"]},
        {"name": "1", "tools": ["refund"]},
        {"name": "2", "url": "shop"},
        {"name": "3", "text": "never seen"},
    ]
    stored = Trajectory(steps=STEPS, task=Task(id="t", metadata={"key_nodes": {"nodes": nodes}}))
    score = rate(PART, ScoreInput(content=stored), len)
    assert score.raw == pytest.approx(0.75)
    assert list(score.step_rewards) == pytest.approx([0.25, 0.0, 0.5])
    sent = ScoreInput(content=Trajectory(steps=STEPS, task=Task(id="t")), metadata={"key_nodes": nodes[:1]})
    assert rate(PART, sent, len).raw == 1.0
    reference = ScoreInput(
        content=Text(text='<tool_call>{"name": "find_order", "arguments": {}}</tool_call>'),
        reference='{"key_nodes": [{"name": "f", "tools": ["find_order"]}]}',
    )
    assert rate(PART, reference, len).raw == 1.0


def test_items_without_key_nodes_are_refused() -> None:
    bare = Trajectory(steps=STEPS, task=Task(id="t", reference='[{"name": "refund"}]'))
    with pytest.raises(RewardError, match="the item has no key nodes") as found:
        rate(PART, ScoreInput(content=bare), len)
    assert found.value.pointer == "/reference"
    with pytest.raises(RewardError, match="regular expression"):
        rate(PART, ScoreInput(content=bare, metadata={"key_nodes": [{"name": "a", "text": "("}]}), len)


@pytest.mark.parametrize(
    ("nodes", "pointer"),
    [
        ([], "/nodes"),
        ([{"name": "a"}], "/nodes/0"),
        ([{"name": "a", "text": "x"}, {"name": "a", "text": "y"}], "/nodes/1/name"),
        ([{"name": "a", "text": "x*"}], "/nodes/0/text"),  # every text has it
        ([{"name": "a", "url": "("}], "/nodes/0/url"),
        ([{"name": "a", "text": "x", "when": [{"path": "p", "one_of": [1]}]}], "/nodes/0/when"),
        ([{"name": "a", "tools": ["t"], "when": [{"path": "p"}]}], "/nodes/0/when/0"),
        ([{"name": "a", "text": "x", "code": "y"}], "/nodes/0"),
        ([{"name": str(i), "text": "x"} for i in range(101)], "/nodes"),
    ],
)
def test_what_is_no_list_of_key_nodes(nodes: list[dict[str, Any]], pointer: str) -> None:
    with pytest.raises(InvalidRecord) as found:
        read_key_nodes(nodes)
    assert (found.value.pointer or "").startswith(pointer)


def test_values_and_addresses() -> None:
    nodes: KeyNodes = read_key_nodes([{"name": "a", "tools": ["t"]}, {"name": "b", "text": "x"}])
    assert [node_values(node) for node in nodes.nodes] == [
        {"name": "a", "tools": ["t"]},
        {"name": "b", "text": "x", "within": "seen"},
    ]
    assert step_addresses(STEPS, 4) == ["https://shop.example/orders/7"]
    assert step_addresses((call("goto", url="https://a.example"),), 0) == ["https://a.example"]
