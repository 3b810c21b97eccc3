import copy

import pytest

from workers.errors import InvalidRecord
from workers.schema import from_atif, from_messages, to_atif
from workers.schema.messages import build_trajectory
from workers.schema.records import ObservationResult, Part, Step, Task, ToolCall, Trajectory

DOCUMENT = {
    "schema_version": "ATIF-v1.5",
    "session_id": "s-1",
    "agent": {"name": "desk", "version": "2", "model_name": "m"},
    "steps": [
        {
            "step_id": 1,
            "source": "user",
            "message": "Where is my order?",
            "timestamp": "2026-01-01T00:00:00Z",
        },
        {
            "step_id": 2,
            "source": "agent",
            "message": "Let me see.",
            "reasoning_content": "look it up",
            "tool_calls": [{"tool_call_id": "c1", "function_name": "look_up", "arguments": {"order": 7}}],
            "observation": {"results": [{"source_call_id": "c1", "content": "on its way"}]},
            "metrics": {"prompt_tokens": 10},
        },
    ],
    "final_metrics": {"total_steps": 2},
}


def test_steps_count_from_zero_and_keep_their_own_number():
    read = from_atif(DOCUMENT)
    assert [step.source for step in read.steps] == ["user", "agent"]
    assert [step.extra["source_index"] for step in read.steps] == [1, 2]
    assert read.steps[1].observation[0].content[0].text == "on its way"
    assert (read.id, read.agent, read.agent_version) == ("s-1", "desk", "2")


def test_a_document_comes_back_with_all_it_held():
    again = from_atif(to_atif(from_atif(DOCUMENT)))
    assert again.steps == from_atif(DOCUMENT).steps
    assert to_atif(again)["final_metrics"] == {"total_steps": 2}
    assert to_atif(again)["agent"] == DOCUMENT["agent"]


def test_every_field_of_a_trajectory_survives():
    whole = Trajectory(
        id="x",
        task=Task(id="t", instruction="do it", reference="done", metadata={"k": 1}),
        agent="a",
        agent_version="1",
        reward=0.5,
        success=False,
        metadata={"seed": 3},
        steps=(
            Step(source="system", message=(Part(text="s"),)),
            Step(
                source="agent",
                reasoning="r",
                tool_calls=(
                    ToolCall(name="f", arguments="not json", id="1"),
                    ToolCall(name="g", arguments={"b": [1]}),
                ),
                observation=(ObservationResult(call_id="1", content=(Part(text="o"),)), ObservationResult()),
                features=(0.5, 1.0),
                reward=0.25,
                metrics={"tokens": 2},
            ),
            Step(source="environment", observation=(ObservationResult(content=(Part(text="rain"),)),)),
            Step(
                source="agent",
                message=(Part(type="image", source="sha256:ab", media_type="image/png"), Part(text="b")),
            ),
        ),
    )
    read = from_atif(to_atif(whole))
    assert [strip(step) for step in read.steps] == list(whole.steps)
    assert read.content_hash == whole.content_hash
    for name in ("id", "task", "agent", "agent_version", "reward", "success", "metadata"):
        assert getattr(read, name) == getattr(whole, name)


def strip(step: Step) -> Step:
    """Without the number the document gave it."""
    extra = {key: value for key, value in step.extra.items() if key != "source_index"}
    return Step(**{name: getattr(step, name) for name in Step.__slots__ if name != "extra"}, extra=extra)


def test_messages_by_way_of_atif_are_the_same_content():
    chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    built_trajectory = build_trajectory(from_messages(chat), Task(id="t"))
    assert from_atif(to_atif(built_trajectory)).content_hash == built_trajectory.content_hash


@pytest.mark.parametrize(
    ("change", "pointer", "says"),
    [
        ({"schema_version": "ATIF-v9"}, "/schema_version", "unknown schema_version"),
        ({"steps.1.step_id": 1}, "/steps/1/step_id", "duplicate step index"),
        ({"steps.1.source": "robot"}, "/steps/1/source", "unknown source"),
        ({"steps.1.tool_calls": []}, "/steps/1/observation/results/0/source_call_id", "without its call"),
        ({"steps.1.source": "user"}, "/steps", "no agent step"),
        ({"extra": {"outcome": {"reward": float("nan")}}}, "/extra/outcome/reward", "not a finite number"),
        ({"extra": {"outcome": {"success": "yes"}}}, "/extra/outcome/success", "true or false"),
        ({"steps": None}, "/steps", "expected a JSON array, got null"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(change, pointer, says):
    document = copy.deepcopy(DOCUMENT)
    for path, value in change.items():
        *parents, last = path.split(".")
        target = document
        for name in parents:
            target = target[int(name)] if name.isdigit() else target[name]
        target[last] = value
    with pytest.raises(InvalidRecord, match=says) as caught:
        from_atif(document)
    assert caught.value.pointer == pointer
