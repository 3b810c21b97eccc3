"""Who spoke, in the text of a step: "Planner: Let us begin." Only steps that name their speaker change."""

from msgspec.structs import replace

from workers.schema import Part, Step, Trajectory
from workers.schema.records import Source

ALL_SOURCES: frozenset[Source] = frozenset(("system", "user", "agent", "environment"))


def with_names(trajectory: Trajectory) -> Trajectory:
    """Each step's speaker in front of its message, or of the first thing that the environment told."""
    if all(step.speaker is None for step in trajectory.steps):
        return trajectory
    return replace(trajectory, steps=tuple(_with_name(step) for step in trajectory.steps))


def _with_name(step: Step) -> Step:
    if step.speaker is None:
        return step
    if step.source != "environment":
        return replace(step, speaker=None, message=_named(step.speaker, step.message))
    if not step.observation:
        return step
    first, *rest = step.observation
    first = replace(first, content=_named(step.speaker, first.content))
    return replace(step, speaker=None, observation=(first, *rest))


def _named(speaker: str, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    if parts and parts[0].type == "text" and parts[0].text:
        return (replace(parts[0], text=f"{speaker}: {parts[0].text}"), *parts[1:])
    return (Part(text=f"{speaker}:"), *parts)
