"""Passages: runs of neighbouring steps of a trajectory that are embedded as one text, for semantic search.

Importable without torch.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from workers.schema.records import Step, Trajectory

PASSAGE_CHARACTERS = 800  # about 200 tokens; the embedded encoder reads 254
MAX_PASSAGES = 64  # of a trajectory; a longer one has passages of more steps
_SHARE = 400  # characters of a result, of which an encoder needs only the beginning


@dataclass(frozen=True, slots=True)
class Passage:
    """Steps first to last, inclusive, as `step` indices."""

    first: int
    last: int
    text: str


def split_passages(trajectory: Trajectory) -> list[Passage]:
    """At most MAX_PASSAGES, in order; the first begins with the task. Steps without text are in the one before them."""
    texts = [step_text(step) for step in trajectory.steps]
    task = trajectory.task.instruction.strip()
    total = len(task) + sum(map(len, texts))
    limit = max(PASSAGE_CHARACTERS, -(-total // MAX_PASSAGES))
    passages: list[Passage] = []
    first, parts, size = 0, [task] if task and task not in texts else [], 0
    for index, text in enumerate(texts):
        if parts and size + len(text) > limit and len(passages) < MAX_PASSAGES - 1 and index > first:
            passages.append(Passage(first, index - 1, "\n".join(parts)))
            first, parts, size = index, [], 0
        if text:
            parts.append(text)
            size += len(text)
    if parts:
        passages.append(Passage(first, max(len(texts) - 1, 0), "\n".join(parts)))
    return passages


def step_text(step: Step) -> str:
    """What is written in a step, its calls, and the beginning of what they returned."""
    return "\n".join(_parts(step)).strip()


def _parts(step: Step) -> Iterator[str]:
    if step.text:
        yield step.text
    if step.reasoning:
        yield step.reasoning[:_SHARE]
    for call in step.tool_calls:
        yield f"{call.name} {call.arguments_text[:_SHARE]}"
    for result in step.observation:
        for part in result.content:
            if part.text:
                yield part.text[:_SHARE]
