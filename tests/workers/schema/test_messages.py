import json
from pathlib import Path

import pytest

from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory, from_messages, from_prompt_response, to_messages
from workers.schema.messages import build_trajectory

CALL = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"order":   7}'}}
CHAT = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Where is my order?", "name": "ann"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "name": "look_up", "content": "on its way"},
    {"role": "assistant", "content": "It is on its way.", "reasoning_content": "the tool said so"},
]


def trajectory(messages: list) -> Trajectory:
    return build_trajectory(from_messages(messages), Task(id="t"))


def test_a_tool_result_is_the_observation_of_the_step_that_called_it():
    steps = from_messages(CHAT)
    assert [step.source for step in steps] == ["system", "user", "agent", "agent"]
    assert steps[2].tool_calls[0].arguments == {"order": 7}
    assert steps[2].observation[0].content[0].text == "on its way"
    assert [step.extra["source_index"] for step in steps] == [0, 1, 2, 4]
    assert trajectory(CHAT).agent_steps == [2, 3]


@pytest.mark.parametrize(
    "messages",
    [
        CHAT,
        [{"role": "user", "content": ""}, {"role": "assistant", "content": ""}],
        [{"role": "developer", "content": "x"}, {"role": "assistant", "content": "y", "refusal": "no", "reward": 0.5}],
        [{"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
         {"role": "function", "name": "f", "content": "1"}],
        [{"role": "assistant", "content": [{"type": "text", "text": "a"},
                                           {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}],
        [{"role": "assistant", "content": "x", "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "f", "arguments": "not json"}},
            {"id": "2", "type": "function", "function": {"name": "f", "arguments": "[1]"}}]},
         {"role": "tool", "tool_call_id": "2", "content": "b"}, {"role": "tool", "tool_call_id": "1", "content": "a"}],
    ],
)  # fmt: skip
def test_messages_come_back_as_they_went_in(messages):
    assert to_messages(trajectory(messages)) == messages


@pytest.mark.parametrize(
    ("messages", "pointer", "says"),
    [
        ([{"role": "user", "content": "x"}], "", "no agent step"),
        ([{"role": "robot", "content": "x"}], "/0/role", "unknown role 'robot'"),
        ([{"role": "tool", "tool_call_id": 9, "content": "x"}], "/0/tool_call_id", "expected a string"),
        ([{"role": "tool", "tool_call_id": "c9", "content": "x"}], "", "no agent step"),
        ([{"role": "assistant", "content": 3}], "/0/content", "expected a JSON array, got a number"),
        (
            [{"role": "assistant", "tool_calls": [{"id": "a"}]}],
            "/0/tool_calls/0/function",
            "expected a JSON object",
        ),
        ([{"role": "assistant", "content": "x", "reward": float("nan")}], "/0/reward", "not a finite number"),
        (
            [{"role": "assistant", "content": [{"type": "hologram"}]}],
            "/0/content/0/type",
            "unknown content part",
        ),
        ("hello", "", "expected a JSON array, got a string"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(messages, pointer, says):
    with pytest.raises(InvalidRecord, match=says) as caught:
        trajectory(messages)
    assert (caught.value.pointer or "") == pointer


def test_nul_and_lone_surrogates_are_replaced_and_marked():
    step = from_messages([{"role": "assistant", "content": "a\x00b\ud83dc"}])[0]
    assert step.text == "a\ufffdb\ufffdc"
    assert step.extra["replaced_characters"] == 2


def test_prompt_and_response_say_the_same_as_messages():
    said = from_prompt_response("Hi", "Hello")
    assert said == from_messages(
        [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    )
    assert from_prompt_response([{"role": "user", "content": "Hi"}], "Hello") == said
    assert [step.source for step in from_prompt_response("", "Hello")] == ["agent"]


def test_the_hash_covers_the_task_and_what_was_said_only():
    built_trajectory = trajectory(CHAT)
    same = Trajectory(
        steps=built_trajectory.steps,
        task=built_trajectory.task,
        agent="somebody",
        reward=1.0,
        success=True,
        metadata={"x": 1},
    )
    other = Trajectory(steps=built_trajectory.steps, task=Task(id="u"))
    assert built_trajectory.content_hash == same.content_hash != other.content_hash


def test_tau_bench_messages_are_equal_after_the_round_trip(shared_data: Path):
    runs = json.loads((shared_data / "tau_bench/gpt-4o-airline-tasks-0-34.json").read_text())
    assert len(runs) == 140
    for run in runs:
        assert to_messages(trajectory(run["traj"])) == run["traj"]


ASKED = {"role": "user", "content": "Where?"}
THOUGHT = [ASKED, {"role": "assistant", "content": "Here.", "reasoning_content": "Hm."}]


@pytest.mark.parametrize(
    "answer",
    [
        {"content": "Here.", "reasoning": "Hm."},
        {"content": "Here.", "thinking": "Hm."},
        {"content": "<think>\nHm.\n</think>\n\nHere."},
        {"content": "<think>Hm.</think>Here."},
        {"content": "Hm.\n</think>\n\nHere."},  # a template that opens the reasoning in the prompt
    ],
)
def test_reasoning_is_one_thing_however_it_is_spelled(answer):
    messages = [THOUGHT[0], {"role": "assistant", **answer}]
    found, expected = from_messages(messages)[1], from_messages(THOUGHT)[1]
    assert (found.reasoning, found.message) == (expected.reasoning, expected.message)
    if "thinking" not in answer:  # which becomes `reasoning_content`
        assert to_messages(trajectory(messages)) == messages


@pytest.mark.parametrize(
    ("content", "reasoning", "said"),
    [
        ("<think>\n\n</think>\n\nHere.", "", "Here."),
        ("<think>cut off", "cut off", ""),
        ("Write </think> to close it.", None, "Write </think> to close it."),
        ("No tag <think> here", None, "No tag <think> here"),
    ],
)
def test_reasoning_in_text_is_what_marks_enclose(content, reasoning, said):
    (step,) = from_messages([{"role": "assistant", "content": content}])
    assert (step.reasoning, step.text) == (reasoning, said)
    assert to_messages(trajectory([{"role": "assistant", "content": content}]))[0]["content"] == content


def test_a_users_marks_are_text():
    (step, _) = from_messages(
        [{"role": "user", "content": "<think>a</think>b"}, {"role": "assistant", "content": ""}]
    )
    assert (step.reasoning, step.text) == (None, "<think>a</think>b")


def test_a_refusal_is_text_that_models_read():
    messages = [{"role": "assistant", "content": None, "refusal": "I cannot help with that."}]
    assert from_messages(messages)[0].text == "I cannot help with that."
    assert to_messages(trajectory(messages)) == messages
