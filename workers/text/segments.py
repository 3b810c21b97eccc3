"""A step as text segments: messages, calls and observations, each with its source.

Only the steps are read. The task's instruction, outcome, rewards, metadata and the agent's name never reach a model.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from workers.schema import Step
from workers.schema.part_text import parts_text

SegmentSource = Literal["system", "user", "agent", "environment", "reasoning", "gap"]
SOURCES: tuple[SegmentSource, ...] = get_args(SegmentSource)
GAP_TEXT = "[...]"


@dataclass(frozen=True, slots=True)
class Segment:
    """source: `environment` also for what an agent's tool calls gave back; `gap` where steps were dropped."""

    text: str
    source: SegmentSource


def segments(step: Step) -> tuple[Segment, ...]:
    """An agent step has at least one segment, if need be empty; its message is itself, with nothing put before it."""
    out: list[Segment] = []
    if step.reasoning:
        out.append(Segment(step.reasoning, "reasoning"))
    lines = [parts_text(step.message), *(f"{call.name}({call.arguments_text})" for call in step.tool_calls)]
    text = "\n".join(line for line in lines if line)
    if text or step.source == "agent":
        out.append(Segment(text, step.source))
    seen = [parts_text(result.content) for result in step.observation]
    out += [Segment(text, "environment") for text in seen if text]
    return tuple(out)
