"""Taking bodies in: so many bytes at once, half of them for one project at most, large ones decoded one at a time.

What is decoded takes several times the memory of its bytes, and Python decodes for one thread at a time: more at once
would cost memory and be no faster. A key has half of the reader threads, so that it cannot hold up the others.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from apps.rewards.serving.access import Caller
from apps.rewards.serving.problems import Problem

LARGE_BYTES = 4 * 2**20
BODIES = 8  # of the largest size, that are in memory at once


@dataclass(eq=False, slots=True)
class Room:
    """What one request holds of the intake. take: as its bytes come. Raises Problem 503."""

    intake: "Intake"
    project: str
    held: int = 0

    def take(self, count: int) -> None:
        self.intake.take(self.project, count)
        self.held += count


@dataclass(eq=False)
class Intake:
    """On the event loop only. limit: bytes of bodies at once; readers: threads."""

    limit: int
    readers: int
    _held: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _slots: "WeakValueDictionary[tuple[str, str], asyncio.Semaphore]" = field(
        default_factory=WeakValueDictionary
    )
    _large: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))

    def take(self, project: str, count: int) -> None:
        held = sum(self._held.values())
        if held + count > self.limit or self._held[project] + count > self.limit // 2:
            raise Problem(
                f"The service holds {held // 2**20} MB of requests that are being read, "
                f"{self._held[project] // 2**20} MB of them of this project; it takes {self.limit // 2**20} MB, and "
                f"{self.limit // 2 // 2**20} MB of one project. Send fewer at once; try again in 2 s.",
                status=503,
                headers={"Retry-After": "2", "Connection": "close"},
                limit=self.limit,
            )
        self._held[project] += count

    @asynccontextmanager
    async def room(self, caller: Caller) -> AsyncIterator[Room]:
        room = Room(self, caller.project)
        try:
            yield room
        finally:
            self._held[caller.project] -= room.held
            if not self._held[caller.project]:
                del self._held[caller.project]

    def turn(self, in_reader: Callable[..., Any], caller: Caller) -> "Turn":
        slot = self._slots.get(caller.turn)
        if slot is None:
            self._slots[caller.turn] = slot = asyncio.Semaphore(max(self.readers // 2, 1))
        return Turn(in_reader, slot, self._large)


@dataclass(frozen=True, slots=True)
class Turn:
    """Calls functions in the reader threads, of which a key has half."""

    in_reader: Callable[..., Any]
    slot: asyncio.Semaphore
    large: asyncio.Semaphore

    async def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        async with self.slot:
            return await self.in_reader(function, *args, **kwargs)

    async def decode(self, parse: Callable[..., Any], body: bytes, headers: Any) -> Any:
        """`parse(body, headers)`; a large body waits until no other one is being decoded."""
        if len(body) < LARGE_BYTES:
            return await self(parse, body, headers)
        async with self.slot, self.large:
            return await self.in_reader(parse, body, headers)
