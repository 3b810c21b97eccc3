"""Too long: the task and the latest steps stay, what is between them goes, and the gap is marked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from workers.schema import Part, Step, ToolCall
from workers.schema.part_text import parts_text
from workers.text.segments import GAP_TEXT

GAP = Step(source="user", message=(Part(text=GAP_TEXT),))
_BESIDE = 8  # tokens around a message, roughly: too few only costs another try
Count = Callable[[str], int]
Shorten = Callable[[str, int], str]


@dataclass(frozen=True, slots=True)
class FittedSteps:
    """kept: steps with their places, the gap's being None. task_room: tokens that the task was cut to, if it was."""

    kept: list[tuple[int | None, Step]]
    task_room: int | None


def fit(
    steps: Sequence[Step], room: int, count: Count, shorten: Shorten, task_tokens: int | None = None
) -> FittedSteps:
    """Steps of about `room` tokens. The last step must be an agent's.

    The task (what stands before the first agent step) gets what the steps leave, at least half of the room; the last
    step all that is then left; a text that is too long loses its middle. task_tokens: at most so many for the task, so
    that answers to one task can be shown the same of it.
    """
    sizes = [sum(map(count, _texts(step))) + _BESIDE * (1 + len(step.observation)) for step in steps]
    first = next(index for index, step in enumerate(steps) if step.source == "agent")
    head, task, rest = list(steps[:first]), sum(sizes[:first]), sum(sizes[first:])
    task_room = max(room // 2, room - rest)
    if task_tokens is not None:
        task_room = min(task_room, task_tokens)
    is_cut = task > task_room
    if is_cut:
        head = _cut(head, task_room, count, shorten)
    left = room - (task_room if is_cut else task)
    if rest > left:
        left -= count(GAP_TEXT) + _BESIDE
    last = list(steps[-1:])
    if sizes[-1] > left:
        last = _cut(last, left, count, shorten)
    tail = len(steps) - 1
    left -= min(left, sizes[-1])
    while tail > first and sizes[tail - 1] <= left:
        tail -= 1
        left -= sizes[tail]
    kept: list[tuple[int | None, Step]] = list(enumerate(head))
    if tail > first:
        kept.append((None, GAP))
    kept += zip(range(tail, len(steps)), [*steps[tail:-1], *last], strict=True)
    return FittedSteps(kept, task_room if is_cut else None)


def _cut(steps: list[Step], room: int, count: Count, shorten: Shorten) -> list[Step]:
    """All texts that are longer than a cap lose their middle; the cap is the highest that fits."""
    sizes = sorted(count(text) for step in steps for text in _texts(step))
    messages = sum(1 + len(step.observation) for step in steps)
    cap, room = 0, room - _BESIDE * messages
    for place, size in enumerate(sizes):
        cap = max(cap, room // (len(sizes) - place))
        if size > cap:
            break
        room -= size
    return [
        _shortened(step, lambda text: shorten(text, cap) if count(text) > cap else text) for step in steps
    ]


def _texts(step: Step) -> list[str]:
    """All that a step says and saw."""
    texts = [
        parts_text(step.message),
        step.reasoning or "",
        *(call.arguments_text for call in step.tool_calls),
    ]
    return texts + [parts_text(result.content) for result in step.observation]


def _shortened(step: Step, change: Callable[[str], str]) -> Step:
    return replace(
        step,
        message=_parts(step.message, change),
        reasoning=change(step.reasoning) if step.reasoning else step.reasoning,
        tool_calls=tuple(_call(call, change) for call in step.tool_calls),
        observation=tuple(
            replace(result, content=_parts(result.content, change)) for result in step.observation
        ),
    )


def _parts(parts: tuple[Part, ...], change: Callable[[str], str]) -> tuple[Part, ...]:
    text = parts_text(parts)
    changed = change(text)
    return parts if changed == text else (Part(text=changed),)


def _call(call: ToolCall, change: Callable[[str], str]) -> ToolCall:
    changed = change(call.arguments_text)
    return call if changed == call.arguments_text else replace(call, arguments=changed, raw=None)
