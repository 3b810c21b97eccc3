"""Reading the bodies of requests: up to a size and within a time, so many bytes at once, large ones decoded in turn.

A decoded body takes several times the memory of its bytes, and Python decodes for one thread at a time: decoding more
of them together would cost memory and be no faster. One project may use half of the bytes, and one key half of the
parser threads, so that neither can hold up the others.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import ParamSpec, TypeVar
from weakref import WeakValueDictionary

from django.conf import settings
from starlette.requests import Request

from apps.rewards.serving.access import Caller
from apps.rewards.serving.problems import Problem

P = ParamSpec("P")
T = TypeVar("T")
LARGE_BYTES = 4 * 2**20
BODIES = 8  # of the largest size, that are in memory together
MOST_SECONDS = 60.0  # for a body: a sender of a byte at a time holds nothing for longer


@dataclass(eq=False, slots=True)
class ThreadSlot:
    """Runs functions in the threads of a pool, of which a key has half."""

    pool: Executor
    slot: asyncio.Semaphore

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        async with self.slot:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self.pool, partial(function, *args, **kwargs))


@dataclass(eq=False)
class KeySlots:
    """On the event loop only. threads: of the pool."""

    pool: Executor
    threads: int
    _slots: "WeakValueDictionary[tuple[str, str], asyncio.Semaphore]" = field(
        default_factory=WeakValueDictionary
    )

    def slot(self, caller: Caller) -> ThreadSlot:
        slot = self._slots.get(caller.queue_key)
        if slot is None:
            self._slots[caller.queue_key] = slot = asyncio.Semaphore(max(self.threads // 2, 1))
        return ThreadSlot(self.pool, slot)


@dataclass(eq=False)
class Intake:
    """On the event loop only. limit: bytes of bodies in memory together. threads: of the pool."""

    limit: int
    pool: Executor
    threads: int
    _held: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _parsers: KeySlots = field(init=False)
    _large: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))

    def __post_init__(self) -> None:
        self._parsers = KeySlots(self.pool, self.threads)

    def parsers(self, caller: Caller) -> ThreadSlot:
        return self._parsers.slot(caller)

    async def read(
        self,
        request: Request,
        parse: Callable[[bytes, Mapping[str, str]], T],
        caller: Caller,
        parsers: ThreadSlot,
    ) -> T:
        """The body of the request, parsed. Raises Problem 413, with the limit, as soon as it is passed; 408 where the
        body does not arrive; 503 where too many bodies are being read; and what `parse` raises."""
        held = 0
        body = bytearray()
        limit = _body_limit(request)
        try:
            async with asyncio.timeout(MOST_SECONDS):
                async for chunk in request.stream():
                    self.reserve(caller.project, len(chunk))
                    held += len(chunk)
                    body += chunk
                    if len(body) > limit:
                        raise _too_large(limit)
        except TimeoutError:
            raise Problem(
                f"The body did not arrive within {MOST_SECONDS:g} s; send it again, or send smaller bodies.",
                status=408,
                headers={"Connection": "close"},
            ) from None
        else:
            data = bytes(body)
            del body
            return await self.parse(parsers, parse, data, request.headers)
        finally:
            self.release(caller.project, held)

    async def parse(
        self,
        parsers: ThreadSlot,
        parse: Callable[[bytes, Mapping[str, str]], T],
        data: bytes,
        headers: Mapping[str, str],
    ) -> T:
        if len(data) < LARGE_BYTES:
            return await parsers.run(parse, data, headers)
        async with self._large:  # until no other large body is being decoded
            return await parsers.run(parse, data, headers)

    def reserve(self, project: str, count: int) -> None:
        """Raises Problem 503 where there is no room for so many bytes."""
        held = sum(self._held.values())
        if held + count > self.limit or self._held[project] + count > self.limit // 2:
            raise Problem(
                f"The service is reading {held // 2**20} MB of requests, {self._held[project] // 2**20} MB of them of "
                f"this project; the limit is {self.limit // 2**20} MB, and {self.limit // 2 // 2**20} MB for one "
                "project. Send fewer requests at the same time; try again in 2 s.",
                status=503,
                headers={"Retry-After": "2", "Connection": "close"},
                limit=self.limit,
            )
        self._held[project] += count

    def release(self, project: str, count: int) -> None:
        self._held[project] -= count
        if not self._held[project]:
            del self._held[project]


def _body_limit(request: Request) -> int:
    """In bytes. Raises Problem 413 where the request declares more."""
    limit: int = settings.REWARDS_MAX_BODY_BYTES
    declared = request.headers.get("Content-Length", "")
    if declared.isdecimal() and (len(declared) > 18 or int(declared) > limit):
        raise _too_large(limit)
    return limit


def _too_large(limit: int) -> Problem:
    return Problem(
        f"The request body is larger than the limit of {limit} bytes; send fewer items in a request, or raise "
        "TOUCHSTONE_REWARDS_MAX_MB.",
        status=413,
        limit=limit,
    )
