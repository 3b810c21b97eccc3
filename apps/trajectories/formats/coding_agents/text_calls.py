"""Calls that agents write as text, such as <function=NAME><parameter=KEY>...</parameter></function>."""

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from workers.schema import ObservationResult, Part, Step, ToolCall
from workers.schema.patterns import TextPattern

_FUNCTION = TextPattern(r"(?s)<function=([\w.-]+)>(.*?)(?:</function>|\z)")
_PARAMETER = TextPattern(r"(?s)<parameter=([\w.-]+)>\n?(.*?)\n?</parameter>")
_OPENING = TextPattern(r"<(\w+)(?: [^<>]*)?>")


@dataclass(frozen=True, slots=True)
class Tagged:
    """<name>inner</name>, from start to end of a text."""

    name: str
    inner: str
    start: int
    end: int


def tagged(text: str, names: Container[str] | None = None) -> list[Tagged]:
    """The outermost elements of a text that are closed, of these names or of any."""
    found: list[Tagged] = []
    unclosed: set[str] = set()
    for opening in _OPENING.finditer(text):
        name = opening[1]
        before = found[-1].end if found else 0
        if opening.start() < before or name in unclosed or (names is not None and name not in names):
            continue
        close = text.find(f"</{name}>", opening.end())
        if close < 0:
            unclosed.add(name)
            continue
        found.append(
            Tagged(name, text[opening.end() : close].strip(), opening.start(), close + len(name) + 3)
        )
    return found


def function_call(text: str) -> tuple[str, ToolCall | None]:
    """The text before the one call of a message, and the call; the full text where there is none, or several."""
    found = list(_FUNCTION.finditer(text))
    if len(found) != 1:
        return text, None
    (block,) = found
    arguments: dict[str, Any] = {each[1]: each[2] for each in _PARAMETER.finditer(block[2])}
    after = text[block.end() :].strip()
    before = text[: block.start()].strip()
    return f"{before}\n\n{after}".strip() if after else before, ToolCall(name=block[1], arguments=arguments)


def with_observations(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """With what the user's side says after a call as the result of that call."""
    found: list[Step] = []
    for step in steps:
        before = found[-1] if found else None
        answers = (
            before is not None and before.source == "agent" and before.tool_calls and not before.observation
        )
        if step.source == "user" and before is not None and answers:
            extra = {"source_index": step.extra["source_index"]}
            kept = {key: value for key, value in step.extra.items() if key != "source_index"}
            result = ObservationResult(content=step.message, extra=extra | kept)
            found[-1] = replace(before, observation=(result,))
        else:
            found.append(step)
    return tuple(found)


def with_text_call(step: Step, call: ToolCall | None, text: str) -> Step:
    """The step with a call that its text holds, and with the text as it was written."""
    if call is None:
        return step
    message = (Part(text=text),) if text else ()
    return replace(step, message=message, tool_calls=(call,), extra=step.extra | {"written": step.text})
