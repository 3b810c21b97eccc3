"""What a language model is shown of a trajectory: a line of JSON for each step, within a number of characters.

Long texts lose their middle, long runs the steps between those that matter; what was left out is said. The outcome is
not shown.
"""

import sys
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from workers.prompts.templates import quoted
from workers.schema import Step, Trajectory

CHARACTERS = 24_000
_TASK = 4000
_LEAST = 160  # characters of a step, below which fewer steps are shown
CLOSE_CHARACTERS = 2000  # characters of each part of a step that is looked at closely
_NUMBERS = 32


def shown(
    trajectory: Trajectory,
    *,
    closely: Collection[int] = (),
    characters: int = CHARACTERS,
    with_speakers: bool = True,
    head: Mapping[str, Any] | None = None,
    notes: Mapping[int, Mapping[str, Any]] = MappingProxyType({}),
) -> str:
    """closely: `step` indices to be shown as fully as can be. with_speakers: steps are by their speaker, where they
    have one, rather than by their source. head: a line after that of the task. notes: more fields of steps."""
    count = len(trajectory.steps)
    most = max(characters // _LEAST, 1)
    chosen = set(range(count))
    if count > most:
        kept = [step for step in sorted(closely) if step < count][: most // 2]
        even = range(0, count, -(-count // max(most - len(kept) - 1, 1)))
        chosen = {*kept, *even, count - 1}
    each = max(characters // max(len(chosen), 1), _LEAST)
    lines = [quoted({"task": _clipped(trajectory.task.instruction, _TASK)})]
    lines += [] if head is None else [quoted(head)]
    before = -1
    for index in sorted(chosen):
        if index > before + 1:
            lines.append(quoted({"left out": f"steps {before + 1} to {index - 1}"}))
        step = trajectory.steps[index]
        by = (step.speaker if with_speakers else None) or step.source
        told = _step(index, step, by, CLOSE_CHARACTERS if index in closely else each)
        lines.append(quoted(told | dict(notes.get(index, {}))))
        before = index
    return "\n".join(lines)


def plain_task_and_answer(trajectory: Trajectory, characters: int) -> tuple[str, str]:
    """What precedes the first agent step, and all that follows, as plain text: for prompts that quote nothing. At most
    so many characters each; of a longer text the middle is left out."""
    first = next(
        (index for index, step in enumerate(trajectory.steps) if step.source == "agent"),
        len(trajectory.steps),
    )
    asked, answered = (
        "\n\n".join(text for step in steps for text in _plain_texts(step))
        for steps in (trajectory.steps[:first], trajectory.steps[first:])
    )
    return _clipped(asked or trajectory.task.instruction, characters), _clipped(answered, characters)


def _plain_texts(step: Step) -> list[str]:
    calls = [f"{call.name}({call.arguments_text})" for call in step.tool_calls]
    results = [part.text for result in step.observation for part in result.content if part.text]
    return [text for text in (step.text, *calls, *results) if text]


def leaves_out(trajectory: Trajectory) -> bool:
    """Whether `shown` leaves anything of it out."""
    numbers = any(step.features is not None and len(step.features) > _NUMBERS for step in trajectory.steps)
    long = len(trajectory.task.instruction) > _TASK
    return numbers or long or shown(trajectory) != shown(trajectory, characters=sys.maxsize)


def _step(index: int, step: Step, by: str, characters: int) -> dict[str, Any]:
    calls = [f"{call.name}({call.arguments_text})" for call in step.tool_calls]
    results = [part.text for result in step.observation for part in result.content if part.text]
    attached = [part.type for part in step.message if part.type != "text"]
    parts = {
        "said": step.text,
        "thought": step.reasoning or "",
        "called": "\n".join(calls),
        "got back": "\n".join(results),
    }
    there = {name: text for name, text in parts.items() if text}
    share = max(characters // max(len(there), 1), 60)
    told: dict[str, Any] = {"step": index, "by": by}
    told |= {name: _clipped(text, share) for name, text in there.items()}
    if attached:
        told["attached"] = attached
    if step.features is not None:
        told["numbers"] = list(step.features[:_NUMBERS])
    return told


def _clipped(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = max((most - 40) // 2, 1)
    return f"{text[:half]} …[{len(text) - 2 * half} characters left out]… {text[-half:]}"
