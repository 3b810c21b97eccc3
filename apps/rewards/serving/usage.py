"""Counting what is asked: in memory at once, in the database every few seconds, made up for after it was away."""

import asyncio
import logging
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.db import DatabaseError, InterfaceError, connection

from apps.rewards.accounting import Sample, write_usage
from apps.rewards.usage import Event, Group

logger = logging.getLogger(__name__)

EVERY_SECONDS = 2.0
MOST_EVENTS = 100_000  # waiting, while the database is away; what is beyond is counted as lost
MOST_SAMPLES = 100
SAMPLE_SECONDS = 30.0  # between two samples of an endpoint
BATCH = 5_000
MOST_GROUPS = (
    2_000  # of runs and policies within an hour; a client that names each request makes no rows for each
)
OTHERS = "(others)"


@dataclass(eq=False)
class _Batch:
    """Written as a whole, under one name however often it is tried."""

    events: Sequence[Event]
    samples: Sequence[Sample]
    name: uuid.UUID = field(default_factory=uuid.uuid4)


class Usage:
    """`record` and `sample` on the event loop only. lost: events that found no room while the database was away."""

    def __init__(self) -> None:
        self.lost = 0
        self.written = 0
        self._events: list[Event] = []
        self._samples: list[Sample] = []
        self._sampled: dict[int, float] = {}  # when an endpoint's last sample was taken
        self._groups: set[Group] = set()
        self._hour: datetime | None = None
        self._unwritten: _Batch | None = None
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="touchstone-usage")

    @property
    def waiting(self) -> int:
        return len(self._events) + (len(self._unwritten.events) if self._unwritten else 0)

    def record(self, event: Event) -> None:
        if len(self._events) >= MOST_EVENTS:
            if not self.lost:
                logger.error(
                    "usage is lost: %d requests wait for the database, no more are kept", MOST_EVENTS
                )
            self.lost += 1
            return
        group = self._bounded(event.group)
        self._events.append(event if group is event.group else replace(event, group=group))

    def _bounded(self, group: Group) -> Group:
        if group.hour != self._hour:
            self._hour, self._groups = group.hour, set()
        if group not in self._groups:
            if len(self._groups) >= MOST_GROUPS:
                return replace(group, run=OTHERS, policy_version="")
            self._groups.add(group)
        return group

    def wants_sample(self, endpoint: int) -> bool:
        """Whether the next request of this endpoint is to be kept."""
        now = time.monotonic()
        if now - self._sampled.get(endpoint, -SAMPLE_SECONDS) < SAMPLE_SECONDS:
            return False
        self._sampled[endpoint] = now
        return len(self._samples) < MOST_SAMPLES

    def sample(self, sample: Sample) -> None:
        self._samples.append(sample)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        """Write what waits. What cannot be written waits for the next time."""
        loop = asyncio.get_running_loop()
        while True:
            if self._unwritten is None:
                if not self._events and not self._samples:
                    return
                self._unwritten = _Batch(self._events[:BATCH], self._samples)
                self._events, self._samples = self._events[BATCH:], []
            batch = self._unwritten
            try:
                await loop.run_in_executor(self._writer, _write, batch)
            except (DatabaseError, InterfaceError, OSError) as error:
                logger.warning("usage of %d requests is not written yet: %s", self.waiting, error)
                return
            self.written += len(batch.events)
            self._unwritten = None

    def close(self) -> None:
        self._writer.shutdown(wait=True)


def _write(batch: _Batch) -> None:
    try:
        write_usage(batch=batch.name, events=batch.events, samples=batch.samples)
    finally:
        connection.close()
