"""Tapes of TapeAgents and AgentLab, and archives of them with their screenshots."""

import json
from typing import Any

import pytest

from apps.accounts.models import Project
from apps.trajectories import formats
from apps.trajectories.exports import export_lines
from apps.trajectories.models import Attachment, Trajectory
from tests.trajectories.test_archive import dumped, zipped
from tests.trajectories.test_pictures import bring, picture
from workers.errors import InvalidRecord

TAPE: dict[str, Any] = {
    "metadata": {
        "id": "tape-1",
        "author": "WebAgent",
        "reward": 1.0,
        "truncated": False,
        "result": {},
        "task": {"task_name": "shop.order", "task_seed": 7, "Final answer": "six"},
    },
    "context": {"tools": []},
    "steps": [
        {"kind": "task", "metadata": {"id": "1"}, "task": "Order six."},
        {
            "kind": "page_observation",
            "metadata": {"other": {"screenshot_path": "s0.png"}},
            "text": "page 0",
            "current_page": 1,
        },
        {
            "kind": "reflection_thought",
            "metadata": {"agent": "WebAgent", "prompt_id": "p1"},
            "page_state": "empty",
            "todo_list": ["search", "order"],
        },
        {"kind": "click_action", "metadata": {"agent": "WebAgent", "prompt_id": "p2"}, "bid": "a51"},
        {
            "kind": "set_next_node",
            "metadata": {"agent": "WebAgent", "prompt_id": "p2"},
            "next_node": "reflect",
        },
        {
            "kind": "page_observation",
            "metadata": {"other": {"screenshot_path": "tapes/shots/s1.png"}},
            "text": "page 1",
            "error": None,
        },
        {"kind": "final_step", "metadata": {"agent": "WebAgent", "prompt_id": "p3"}, "reason": "Done."},
    ],
}


def read(document: dict[str, Any]) -> Any:
    assert formats.detect(document).name == "tape"
    return formats.FORMATS["tape"].read(json.loads(json.dumps(document)))


def test_a_tape() -> None:
    read_trajectory = read(TAPE)
    assert [(step.source, step.text) for step in read_trajectory.steps] == [
        ("user", "Order six."),
        ("environment", ""),
        ("agent", ""),
        ("agent", "Done."),
    ]
    assert (read_trajectory.task.id, read_trajectory.task.instruction, read_trajectory.task.reference) == (
        "shop.order 7",
        "Order six.",
        "six",
    )
    assert (read_trajectory.reward, read_trajectory.success, read_trajectory.agent) == (1.0, True, "WebAgent")
    seen = read_trajectory.steps[1].observation[0]
    assert [(part.type, part.text or part.source) for part in seen.content] == [
        ("text", "page 0"),
        ("image", "s0.png"),
    ]
    acted = read_trajectory.steps[2]
    assert acted.reasoning == "page state: empty\ntodo list: \n- search\n- order"
    assert (acted.tool_calls[0].name, acted.tool_calls[0].arguments) == ("click", {"bid": "a51"})
    assert acted.observation[0].content[0].text == "page 1"
    assert acted.extra["control"] == [{"kind": "set_next_node", "next_node": "reflect"}]
    assert (acted.extra["source_index"], acted.speaker) == (2, "WebAgent")


def test_a_tape_of_agentlab() -> None:
    """Its observations are JSON, its actions code, and each is worth what the environment paid."""
    view = {
        "goal": "Buy it.",
        "axtree_txt": "tree",
        "screenshot": [[[0, 0, 0]]],
        "url": "http://x/",
        "extra_element_properties": {"a51": {"bbox": [1, 2, 3, 4], "visibility": 1.0}, "b": {"bbox": None}},
    }
    read_trajectory = read(
        {
            "metadata": {"reward": 0.5, "task": {"task_name": "shop"}},
            "steps": [
                {"kind": "dict_observation", "metadata": {}, "content": json.dumps(view)},
                {"kind": "assistant_thought", "metadata": {}, "content": "I click."},
                {
                    "kind": "assistant",
                    "metadata": {"other": {"reward": 0.5, "stats": {}}},
                    "content": "click('a51')",
                },
                {
                    "kind": "dict_observation",
                    "metadata": {},
                    "content": json.dumps(view | {"axtree_txt": "after"}),
                },
                {"kind": "assistant", "metadata": {"other": {"reward": 0}}, "content": "Done (I think)."},
            ],
        }
    )
    assert [step.source for step in read_trajectory.steps] == ["environment", "agent", "agent"]
    clicked = read_trajectory.steps[1]
    assert (clicked.reasoning, clicked.tool_calls[0].name, clicked.reward) == ("I click.", "click", 0.5)
    assert clicked.observation[0].content[0].text == "after"
    assert read_trajectory.steps[0].observation[0].extra["boxes"] == {"a51": [1, 2, 3, 4]}
    assert read_trajectory.steps[2].text == "Done (I think)."
    assert (read_trajectory.reward, read_trajectory.success) == (0.5, False)


def test_calls_and_their_answers_on_a_tape() -> None:
    call = {"id": "c1", "function": {"name": "look", "arguments": {"order": 7}}}
    read_trajectory = read(
        {
            "metadata": {},
            "steps": [
                {"kind": "user", "metadata": {}, "content": "Where?"},
                {"kind": "assistant", "metadata": {"prompt_id": "p"}, "tool_calls": [call]},
                {"kind": "search_action", "metadata": {"prompt_id": "p"}, "query": "it"},
                {"kind": "tool", "metadata": {}, "tool_call_id": "c1", "content": "in Ulm"},
                {
                    "kind": "search_results_observation",
                    "metadata": {},
                    "serp": [{"title": "Ulm"}],
                    "query": "it",
                },
                {"kind": "gaia_answer", "metadata": {}, "answer": "Ulm", "success": True},
            ],
        }
    )
    (asked, acted, said) = read_trajectory.steps
    assert [tool_call.name for tool_call in acted.tool_calls] == ["look", "search"]
    assert [result.call_id for result in acted.observation] == ["c1", None]
    assert "title" in acted.observation[1].content[0].text
    assert said.text == "answer: Ulm\nsuccess: True"
    assert asked.text == "Where?"


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"steps": [TAPE["steps"][0], {"kind": 1}]}, "/steps/1/kind"),
        ({"steps": [TAPE["steps"][0], {"metadata": {}}]}, "/steps/1/kind"),
        ({"steps": [TAPE["steps"][0], 1]}, "/steps/1"),
        ({"steps": [TAPE["steps"][0]]}, "/steps"),
        ({"metadata": {"reward": "much"}}, "/metadata/reward"),
        ({"steps": [{"kind": "dict_observation", "content": "{"}]}, "/steps/0/content"),
    ],
)
def test_what_is_no_tape(change: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidRecord) as error:
        read(TAPE | change)
    assert error.value.pointer == pointer


def test_screenshots_come_from_the_archive(project: Project) -> None:
    read_trajectory, other = picture(40, 30), picture(50, 30)
    data = zipped(
        {
            "a/tape.json": dumped(TAPE),
            "a/s0.png": read_trajectory,
            "b/s0.png": other,
            "a/shots/s1.png": other,
            "b/shots/s1.png": read_trajectory,
        }
    )
    bring(project, data)
    steps = list(Trajectory.objects.get().steps.order_by("index"))
    sizes = {row.sha256: row.width for row in Attachment.objects.all()}
    named = [
        sizes[part["source"].removeprefix("sha256:")]
        for step in steps
        for result in step.observation
        for part in result["content"]
        if part.get("type") == "image"
    ]
    assert named == [40, 50]
    assert json.loads(dumped(TAPE)) == json.loads(_original(project))


def _original(project: Project) -> bytes:
    return next(iter(export_lines(project, Trajectory.objects.all(), format="original")))


def test_what_is_refused_of_archives_of_tapes(project: Project) -> None:
    lying = zipped({"tape.json": dumped(TAPE), "s0.png": b"MZ"})
    assert "is declared as image/png" in bring(project, lying).rejected[0]["message"]
    pickled = zipped({"tape.json": dumped(TAPE), "step_0.pkl.gz": b"x"})
    assert "is a pickle" in bring(project, pickled).rejected[0]["message"]
    assert bring(project, pickled, keep_good=True).created == 1
    outside = zipped({"tape.json": dumped(TAPE), "../s0.png": picture(9, 9)})
    assert "outside of it" in bring(project, outside).rejected[0]["message"]
