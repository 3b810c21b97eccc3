"""Which lists are refused, and that a count looks through what the component looks through."""

from typing import Any

import pytest

from workers.engine.rules.progress import by_step
from workers.errors import InvalidRecord
from workers.schema import Trajectory, parse_item
from workers.subgoals.subgoal_lists import Subgoal, agent_run_text, reached_counts, require_subgoals

RUN: dict[str, Any] = {
    "messages": [
        {"role": "user", "content": "Open the map."},
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "Where is it?",
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "open", "arguments": '{"what": "map"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c", "content": "The map is open."},
        {"role": "user", "content": "And the door?"},
        {"role": "assistant", "content": "It is shut."},
    ]
}


@pytest.fixture
def run() -> Trajectory:
    content = parse_item(RUN).content
    assert isinstance(content, Trajectory)
    return content


def goal(expression: str) -> Subgoal:
    return Subgoal(goal="g", expression=expression)


def test_the_text_is_that_of_the_component(run: Trajectory) -> None:
    assert agent_run_text(run) == "\n".join(by_step(parse_item(RUN), "both")).strip()
    assert "The map is open." in agent_run_text(run) and "And the door?" not in agent_run_text(run)
    assert reached_counts([goal("map is open"), goal("And the door")], [run, run]) == [2, 0]


@pytest.mark.parametrize(
    ("goals", "said"),
    [
        ([], "There are 0 subgoals; give 1 to 20"),
        ([goal(f"map{number}") for number in range(21)], "There are 21 subgoals"),
        ([goal("(")], "missing"),
        ([goal("(?=a)")], "invalid perl operator"),
        ([goal("a*")], "found in every text"),
        ([goal("map"), goal("map")], "stands twice"),
        ([goal("map"), goal("no such thing")], "found in none of the runs"),
    ],
)
def test_what_cannot_be_a_list(run: Trajectory, goals: list[Subgoal], said: str) -> None:
    with pytest.raises(InvalidRecord, match=said) as caught:
        require_subgoals(goals, [run])
    assert caught.value.pointer and caught.value.pointer.startswith("/subgoals")
