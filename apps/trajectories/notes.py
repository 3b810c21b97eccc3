"""Notes of people on a trajectory, for its page. Apps with feedback register a source of notes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from apps.core.registries import Registry


@dataclass(frozen=True, slots=True)
class Note:
    """first, last: `step` indices, inclusive; None: of the full trajectory. sign: 1 positive, -1 negative, or 0."""

    who: str
    text: str
    first: int | None = None
    last: int | None = None
    sign: int = 0


Source = Callable[[int, list[int]], Iterable[Note]]
_SOURCES: Registry[Source] = Registry()


def register(source: Source) -> None:
    """source: maps the primary key of a trajectory and the `step` index of each agent step to its notes."""
    _SOURCES.add(source)


def collect_notes(trajectory_id: int, agent_steps: list[int]) -> list[Note]:
    """In the order of the steps; notes on the full trajectory come first."""
    found = [note for source in _SOURCES for note in source(trajectory_id, agent_steps)]
    return sorted(found, key=lambda note: -1 if note.first is None else note.first)
