"""Trajectory formats: one module each, and the table they are found by."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from apps.core.errors import DomainError
from apps.trajectories.formats import atif, openai, prompt_response, tau_bench
from workers.errors import InvalidRecord
from workers.schema import Trajectory


@dataclass(frozen=True, slots=True)
class Format:
    """sign: what `sniff` goes by, in words. read: one decoded document to a Trajectory, raising InvalidRecord."""

    name: str
    title: str
    sign: str
    sniff: Callable[[Any], bool]
    read: Callable[[Any], Trajectory]


# In the order they are tried: the most particular first.
FORMATS = {
    one.name: one
    for one in (
        Format("atif", "ATIF 1.4 to 1.8", atif.SIGN, atif.sniff, atif.read),
        Format("tau-bench", "tau-bench results", tau_bench.SIGN, tau_bench.sniff, tau_bench.read),
        Format("openai", "OpenAI chat messages", openai.SIGN, openai.sniff, openai.read),
        Format(
            "prompt-response",
            "prompt and response",
            prompt_response.SIGN,
            prompt_response.sniff,
            prompt_response.read,
        ),
    )
}
AUTO = "auto"


def by_name(name: str) -> Format | None:
    """The format of that name; None for `auto`. Raises DomainError."""
    if name == AUTO:
        return None
    if name not in FORMATS:
        raise DomainError(f"There is no trajectory format {name!r}; known are auto, {', '.join(FORMATS)}.")
    return FORMATS[name]


def detect(document: Any) -> Format:
    """The format a decoded document looks like. Raises InvalidRecord."""
    for one in FORMATS.values():
        if one.sniff(document):
            return one
    has = f"an object with the keys {_listed(document)}" if isinstance(document, dict) else "no object"
    signs = "; ".join(f"{one.name}: {one.sign}" for one in FORMATS.values())
    raise InvalidRecord(f"cannot tell which format this is: it is {has}. Known are {signs}.")


def _listed(document: dict[str, Any]) -> str:
    keys = [repr(key[:40]) for key in document]
    return ", ".join(keys[:8]) + (", ..." if len(keys) > 8 else "") if keys else "(none)"
