"""What people said of a trajectory, where it is looked at. Trajectories know nothing of feedback: its app registers."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Note:
    """first, last: `step` indices, inclusive; None: of the whole. sign: 1 praise, -1 blame, 0 neither."""

    who: str
    text: str
    first: int | None = None
    last: int | None = None
    sign: int = 0


Source = Callable[[int, list[int]], Iterable[Note]]
_SOURCES: list[Source] = []


def register(source: Source) -> None:
    """source: given the key of a trajectory and the `step` index of each agent step, what was said of it."""
    if source not in _SOURCES:
        _SOURCES.append(source)


def notes_of(trajectory_id: int, agent_steps: list[int]) -> list[Note]:
    """In the order of the steps; what is of the whole comes first."""
    found = [note for source in _SOURCES for note in source(trajectory_id, agent_steps)]
    return sorted(found, key=lambda note: -1 if note.first is None else note.first)
