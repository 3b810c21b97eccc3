"""Runs logged as a chat in which the environment speaks as the user."""

from msgspec.structs import replace

from workers.schema import ObservationResult, Step


def observed_results(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """With results whose calls the log leaves out as observations of the agent step before them."""
    found: list[Step] = []
    for step in steps:
        if step.source == "environment" and found and found[-1].source == "agent":
            found[-1] = replace(found[-1], observation=(*found[-1].observation, *step.observation))
        else:
            found.append(step)
    return tuple(found)


def observed(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """With what users say after the agent's first turn as observations of the agent step before it."""
    found: list[Step] = []
    agent = None
    for step in steps:
        if step.source == "user" and agent is not None:
            result = ObservationResult(
                content=step.message, extra={"source_index": step.extra["source_index"]}
            )
            found[agent] = replace(found[agent], observation=(*found[agent].observation, result))
            continue
        if step.source == "agent":
            agent = len(found)
        found.append(step)
    return tuple(found)
