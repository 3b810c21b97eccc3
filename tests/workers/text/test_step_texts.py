"""What the linear backbone reads: the agent's words and observations, step by step."""

import pytest

from workers.errors import RewardError
from workers.schema import Features, ObservationResult, Part, Step, Task, Text, TokenIds, ToolCall, Trajectory
from workers.text import STRUCTURE, StepTextRenderer

RENDERER = StepTextRenderer()
CALL = Step(
    source="agent",
    reasoning="The order is known.",
    message=(Part(text="One moment."),),
    tool_calls=(ToolCall(name="find", arguments={"number": 17}, id="c1"),),
    observation=(ObservationResult(content=(Part(text="sent"),), call_id="c1"),),
)


def text_step(source, text: str) -> Step:
    return Step(source=source, message=(Part(text=text),))


def test_a_step_is_what_the_agent_wrote_and_what_its_calls_gave_back() -> None:
    run = Trajectory(
        steps=(text_step("user", "Where is 17?"), CALL, text_step("agent", "Sent.")), task=Task(id="t")
    )
    rendered = RENDERER.render(run)
    assert rendered.agent_texts == ('The order is known.\nOne moment.\nfind({"number": 17})', "Sent.")
    assert rendered.observations == ("sent", "")
    assert rendered.structure.shape == (2, len(STRUCTURE))
    assert rendered.reads == (0, 1)
    assert rendered.tokens == 2 + 9 + 1


def test_earlier_steps_do_not_change_when_the_trajectory_grows() -> None:
    steps = (
        text_step("user", "Where is 17?"),
        CALL,
        text_step("agent", "Sent."),
        text_step("user", "Thanks"),
        CALL,
    )
    whole = RENDERER.render(Trajectory(steps=steps, task=Task(id="t")))
    before = RENDERER.render(Trajectory(steps=steps[:3], task=Task(id="t")))
    assert whole.agent_texts[:2] == before.agent_texts
    assert whole.structure[:2].tolist() == before.structure.tolist()


def test_keys_tell_texts_apart() -> None:
    texts = [("a", "bc"), ("ab", "c"), ("abc",), ("abc", "")]
    runs = [
        Trajectory(steps=tuple(text_step("agent", text) for text in each), task=Task(id="t"))
        for each in texts
    ]
    assert len({RENDERER.render(run).key for run in runs}) == len(texts)
    assert RENDERER.render(Text("abc")).key == RENDERER.render(runs[2]).key


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (Features(((1.0,),)), "this model reads text"),
        (TokenIds((1, 2)), "no tokenizer"),
        (Trajectory(steps=(text_step("user", "hi"),), task=Task(id="t")), "no agent step"),
    ],
)
def test_what_has_no_words_is_refused(content, message) -> None:
    with pytest.raises(RewardError, match=message):
        RENDERER.render(content)
