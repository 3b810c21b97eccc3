"""A trajectory as if it had been asked to do what it did."""

from msgspec.structs import replace

from workers.schema.conditions import REACHED
from workers.schema.records import DERIVED_FROM, Part, Step, Trajectory

LONGEST_TASK = 4000


def same_text(first: str, second: str) -> bool:
    """Whether two texts have the same words, whatever their case and white space."""
    return first.lower().split() == second.lower().split()


def relabelled(trajectory: Trajectory, task: str) -> Trajectory:
    """With `task` as the instruction, as its goal, and where the agent read what it was asked for.

    What precedes the first agent step has the new text wherever it had the instruction; where it had it nowhere, what
    the user wrote there is the new text alone. The reference answer, the outcome and rewards of steps belong to the
    task that was asked for and are left out; the id is another one's.
    """
    first = next((at for at, step in enumerate(trajectory.steps) if step.source == "agent"), 0)
    opening, rest = trajectory.steps[:first], trajectory.steps[first:]
    metadata = {name: value for name, value in trajectory.metadata.items() if name != REACHED}
    return replace(
        trajectory,
        id=None,
        steps=(
            *_opening(opening, trajectory.task.instruction, task),
            *(replace(step, reward=None) for step in rest),
        ),
        task=replace(trajectory.task, instruction=task, reference=None),
        reward=None,
        success=None,
        metadata=metadata | {"goal": task, DERIVED_FROM: trajectory.content_hash},
    )


def _opening(steps: tuple[Step, ...], instruction: str, task: str) -> list[Step]:
    wanted = instruction.strip()
    if wanted and any(wanted in (part.text or "") for step in steps for part in step.message):
        return [
            replace(
                step,
                message=tuple(
                    replace(part, text=part.text.replace(wanted, task)) if part.text else part
                    for part in step.message
                ),
            )
            for step in steps
        ]
    kept = [step for step in steps if step.source != "user"]
    return [*kept, Step(source="user", message=(Part(text=task),))]
