"""Passages that a judge scores one by one: results of tools, each next to the question and the answer alone."""

from typing import Literal

from msgspec.structs import replace

from workers.engine.rules.agent_text import message_of, results
from workers.engine.rules.evidence import cited_passages
from workers.schema import ObservationResult, Part, ScoreInput, Step, Trajectory

MAX_PASSAGES = 32


def each_passage(
    trajectory: Trajectory, which: Literal["retrieved", "cited"]
) -> list[tuple[int, Trajectory]]:
    """The agent_step that retrieved each passage, and the trajectory with this passage alone: what the user said before
    the first agent step, the call with its result, and the last agent message. Of more than 32, evenly chosen ones."""
    agent = [trajectory.steps[index] for index in trajectory.agent_steps]
    if not agent:
        return []
    answer = message_of(agent[-1])
    found = results(ScoreInput(content=trajectory))
    passages = [(place, text) for place, texts in enumerate(found) for text in texts]
    if which == "cited":
        passages = cited_passages(passages, answer)
    if len(passages) > MAX_PASSAGES:
        passages = [passages[number * len(passages) // MAX_PASSAGES] for number in range(MAX_PASSAGES)]
    asked = tuple(step for step in trajectory.steps[: trajectory.agent_steps[0]] if step.source == "user")
    last = Step(source="agent", message=(Part(text=answer),))
    return [
        (place, replace(trajectory, steps=(*asked, _retrieved(agent[place], text), last)))
        for place, text in passages
    ]


def _retrieved(step: Step, text: str) -> Step:
    return Step(
        source="agent",
        tool_calls=step.tool_calls,
        observation=(ObservationResult(content=(Part(text=text),)),),
    )
