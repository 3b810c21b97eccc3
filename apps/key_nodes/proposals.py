"""What a step proposes as the pattern of a key node: its calls with their arguments, its addresses, a quoted text."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from workers import schema
from workers.schema.part_text import parts_text
from workers.schema.patterns import SPACE
from workers.schema.patterns import quote as escaped

_MOST_ARGUMENTS = 40  # of a call
_DEEPEST = 3
_LONGEST_TICKED = 60  # characters of a value that is part of the pattern until someone takes it out
_LONGEST_VALUE = 500
_LONGEST_QUOTE = 120


@dataclass(frozen=True, slots=True)
class ProposedArgument:
    """path: as a ValueTest has it. value: a text, number, true or false."""

    path: str
    value: Any

    @property
    def text(self) -> str:
        return self.value if isinstance(self.value, str) else str(self.value).lower()

    @property
    def is_ticked(self) -> bool:
        return len(self.text) <= _LONGEST_TICKED

    @property
    def test(self) -> dict[str, Any]:
        return {"path": self.path, "one_of": [self.value]}


@dataclass(frozen=True, slots=True)
class ProposedCall:
    name: str
    arguments: list[ProposedArgument]


@dataclass(frozen=True, slots=True)
class StepProposal:
    """quote: a text of the step. is_quoted: someone selected it. said: all that the agent wrote. observed: all that
    was observed."""

    calls: list[ProposedCall]
    addresses: list[str]
    quote: str
    said: str
    observed: str
    is_quoted: bool

    @property
    def choice(self) -> str:
        """What the pattern is until someone chooses."""
        if self.is_quoted:
            return "text"
        return "call-0" if self.calls else "url" if self.addresses else "text"


def propose_node(steps: tuple[schema.Step, ...], index: int, quote: str = "") -> StepProposal:
    """quote: a text that was selected in the step; without it, the first line there is."""
    from workers.engine.rules.agent_text import step_text
    from workers.engine.rules.key_nodes import step_addresses
    from workers.engine.rules.tools import tool_calls

    step = steps[index]
    observed = "\n".join(filter(None, (parts_text(result.content) for result in step.observation)))
    if step.source == "environment":
        observed = "\n".join(filter(None, (parts_text(step.message), observed)))
    said = step_text(step) if step.source == "agent" else ""
    message = parts_text(step.message)
    line = next((line.strip() for line in (observed or message).splitlines() if line.strip()), "")
    calls = tool_calls(step) if step.source == "agent" else []
    return StepProposal(
        calls=[ProposedCall(call.name, _arguments(call.arguments or {})) for call in calls if call.name],
        addresses=step_addresses(steps, index),
        quote=quote.strip() or line[:_LONGEST_QUOTE].strip(),
        said=said,
        observed=observed,
        is_quoted=bool(quote.strip()),
    )


def quoted_expression(text: str) -> str:
    """RE2 that finds the text, whatever its white space."""
    words = text.split()
    between = r"\s+" if text.isascii() else f"[{SPACE}]+"  # the short form where it finds the same
    return between.join(escaped(word) for word in words)


def _arguments(arguments: Mapping[str, Any]) -> list[ProposedArgument]:
    found = list[ProposedArgument]()
    for path, value in _values(arguments, 0):
        if len(found) == _MOST_ARGUMENTS:
            break
        if not isinstance(value, str) or len(value) <= _LONGEST_VALUE:
            found.append(ProposedArgument(path, value))
    return found


def _values(value: Any, depth: int, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping | list) and depth < _DEEPEST:
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, each in pairs:
            if "." not in str(key) and str(key) not in ("", "*"):
                yield from _values(each, depth + 1, f"{path}.{key}" if path else str(key))
    elif isinstance(value, str | int | float | bool) and path and len(path) <= 200:
        yield path, value
