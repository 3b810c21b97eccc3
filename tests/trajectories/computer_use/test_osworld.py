"""OSWorld's traj.jsonl, alone and in an archive of results."""

import base64
import json
from pathlib import Path

import pytest

from apps.trajectories.clicks import ClickMark, click_marks
from tests.trajectories.computer_use.documents import OSWORLD, PNG
from tests.trajectories.conftest import lines
from tests.trajectories.reading import media, read_bytes, read_one, zipped
from tests.trajectories.real_files import comes_back

RUN = "pyautogui/screenshot/gpt-4o/chrome/bb5e"
TASK = {"id": "bb5e", "snapshot": "chrome", "instruction": "Use Bing.", "evaluator": {"func": "match"}}


def test_actions_of_one_response_are_one_step() -> None:
    run = read_one(OSWORLD)
    assert [step.text for step in run.steps] == ["I click twice.", "It is done."]
    assert [[call.arguments for call in step.tool_calls] for step in run.steps] == [
        [{"code": "pyautogui.click(100, 200)"}, {"code": "pyautogui.click(300, 200)"}],
        [{}],
    ]
    assert run.steps[1].tool_calls[0].name == "DONE"
    assert media(run) == ["step_1_a.png", "step_1_b.png", "step_2_c.png"]
    assert run.steps[0].observation[1].extra["info"] == {"note": "slow"}
    assert (run.reward, run.success) == (None, None)  # 0 is what OSWorld gives for every action
    assert all(step.reward is None for step in run.steps)
    assert comes_back(run)
    assert click_marks(run.steps[0].tool_calls, (), (1920, 1080))[0] == ClickMark(100, 200)


def test_a_reward_that_is_one_is_the_outcome(shared_data: Path) -> None:
    (run,), _, reader = read_bytes((shared_data / "wild/osworld-shape__traj.jsonl").read_bytes())
    assert reader.format is not None and reader.format.name == "osworld"
    assert (run.reward, run.success) == (1, True)
    assert [step.reward for step in run.steps] == [0, 1]
    assert [step.text for step in run.steps] == ["I click", "done"]


def test_an_archive_puts_a_run_together() -> None:
    picture = base64.b64decode(PNG)
    raw = zipped(
        {
            f"{RUN}/result.txt": "0.5\n",
            f"{RUN}/step_1_a.png": picture,
            f"{RUN}/step_1_b.png": picture,
            f"{RUN}/step_2_c.png": picture,
            f"{RUN}/traj.jsonl": lines(*OSWORLD),
            "pyautogui/screenshot/gpt-4o/chrome/other/traj.jsonl": lines(*OSWORLD),
            "pyautogui/screenshot/gpt-4o/args.json": json.dumps(
                {"action_space": "pyautogui", "observation_type": "screenshot", "model": "gpt-4o-2024"}
            ),
            "examples/chrome/bb5e.json": json.dumps(TASK),
            "examples/chrome/unused.json": json.dumps(TASK | {"id": "unused"}),
        }
    )
    (run, other), refused, reader = read_bytes(raw)
    assert not refused
    assert (run.task.id, run.task.instruction, run.reward, run.success) == ("bb5e", "Use Bing.", 0.5, False)
    assert run.task.metadata == {"snapshot": "chrome", "evaluator": {"func": "match"}}
    assert (run.agent, other.agent) == ("gpt-4o-2024", "gpt-4o-2024")
    assert (other.task.id, other.reward) == ("other", None)
    assert media(run) == ["data:image/png"] * 3
    assert media(other) == [
        "step_1_a.png",
        "step_1_b.png",
        "step_2_c.png",
    ]  # of another folder: it stays a name
    assert [each["path"] for each in reader.dropped.as_json()] == ["/examples~1chrome~1unused.json"]


def test_a_model_is_known_by_the_path() -> None:
    (run,), _, _ = read_bytes(zipped({f"{RUN}/traj.jsonl": lines(*OSWORLD)}))
    assert run.agent == "gpt-4o"


@pytest.mark.parametrize(
    ("document", "what"),
    [
        (TASK, "is the configuration of a task of OSWorld, not a run"),
        ({"action_space": "pyautogui", "observation_type": "som"}, "is the arguments of OSWorld, not a run"),
    ],
)
def test_what_is_no_run_is_refused(document: object, what: str) -> None:
    found, (error,), _ = read_bytes(lines(document))
    assert not found and what in error.message and "traj.jsonl" in error.message


def test_calls_of_apis_keep_their_ids_and_arguments() -> None:
    claude = {
        "name": "computer",
        "input": {"action": "left_click", "coordinate": [5, 6]},
        "id": "toolu_1",
        "action_type": "tool_use",
        "command": "pyautogui.click(5, 6)",
        "raw_response": "[TEXT] I click",
    }
    openai = {
        "action_space": "pyautogui",
        "action": "pyautogui.click(1, 2)",
        "call_id": "call_9",
        "pending_checks": [],
    }
    blocks = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "I click."}]
    rows = [
        OSWORLD[0] | {"action": claude, "response": blocks},
        OSWORLD[2] | {"action": openai, "response": ["Ok."]},
    ]
    run = read_one(rows)
    first, second = run.steps
    assert (first.reasoning, first.text, first.tool_calls[0].id) == ("Hm.", "I click.", "toolu_1")
    assert first.tool_calls[0].arguments == {"action": "left_click", "coordinate": [5, 6]}
    assert first.tool_calls[0].extra["action"]["command"] == "pyautogui.click(5, 6)"
    assert first.observation[0].call_id == "toolu_1"
    assert (second.text, second.tool_calls[0].id) == ("Ok.", "call_9")
    assert second.tool_calls[0].arguments == {"code": "pyautogui.click(1, 2)"}


def test_what_ended_a_run_is_seen() -> None:
    run = read_one([*OSWORLD, {"Error": "Time limit exceeded in chrome/bb5e"}])
    assert run.steps[-1].source == "environment"
    assert run.steps[-1].observation[0].content[0].text == "Time limit exceeded in chrome/bb5e"


@pytest.mark.parametrize(
    ("response", "text"),
    [
        (None, ""),
        ("", ""),
        ({"plan": "I wait."}, '{"plan": "I wait."}'),
        ([{"plan": "I wait."}], '[{"plan": "I wait."}]'),
        ({"response": "I wait.", "state_correct": True}, "I wait."),
        (["I", "wait."], "I\nwait."),
    ],
)
def test_a_response_of_any_shape_is_read(response: object, text: str) -> None:
    (step,) = read_one([OSWORLD[0] | {"response": response}]).steps
    assert step.text == text and len(step.tool_calls) == 1


def test_items_of_the_responses_api_give_the_call_and_where_it_clicked() -> None:
    items = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"type": "computer_call", "call_id": "c1", "action": {"type": "click", "x": 10, "y": 20}},
    ]
    action = {"action_space": "pyautogui", "action": "pyautogui.click(10, 20)", "call_id": "c1"}
    (step,) = read_one([OSWORLD[0] | {"response": items, "action": action}]).steps
    assert (step.reasoning, [call.id for call in step.tool_calls]) == ("Hm.", ["c1"])
    assert step.observation[0].call_id == "c1"
    assert click_marks(step.tool_calls, (), (1920, 1080)) == [ClickMark(10, 20)]
