"""Usage counted in memory, and written to the database every few seconds; while it is unreachable, usage waits."""

import asyncio
import logging
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime

import psycopg
from django.db import DatabaseError, DataError, InterfaceError, connection

from apps.rewards.accounting import SampledItem, write_usage
from apps.rewards.guard_log import LoggedDecision
from apps.rewards.pair_statistics import ScorePair
from apps.rewards.usage import UsageEvent, UsageGroup
from workers.engine.rules import repetition
from workers.errors import RewardError
from workers.schema import ScoreInput
from workers.schema.components import RepetitionPenalty

logger = logging.getLogger(__name__)

EVERY_SECONDS = 2.0
MOST_EVENTS = 100_000  # waiting, while the database is unreachable; more are counted as lost
MOST_SAMPLES = 500
SAMPLE_TOKENS = 50_000  # of one sample: people read them
MOST_SAMPLE_TOKENS = 1_000_000  # waiting to be written
MOST_DECISION_CHARACTERS = 20_000_000  # of excerpts that wait; decisions beyond are logged without
MOST_PAIRS, MOST_POLICIES = 20_000, 200
BATCH = 5_000
# Of runs and policies within an hour; a client that names each request makes no rows for each.
MOST_GROUPS = 2_000
MOST_FLAGS, LONGEST_FLAG = 100, 80  # of an endpoint within an hour; characters
OTHERS = "(others)"


@dataclass(eq=False)
class _Batch:
    """Written in one transaction, under one name however often it is retried."""

    events: Sequence[UsageEvent]
    samples: Sequence[SampledItem]
    pairs: Sequence[ScorePair]
    name: uuid.UUID = field(default_factory=uuid.uuid4)


class UsageWriter:
    """`record`, `sample` and `pair` on the event loop only.

    lost: events without room while the database was unreachable, and those of batches that no database takes.
    """

    def __init__(self) -> None:
        self.lost = 0
        self.written = 0
        self._events: list[UsageEvent] = []
        self._samples: list[SampledItem] = []
        self._pairs: list[ScorePair] = []
        self._policies: dict[int, set[str]] = {}  # of each release
        self._sample_tokens = 0
        self._decision_characters = 0
        self._groups: set[UsageGroup] = set()
        self._flags: dict[int, set[str]] = {}  # of each endpoint
        self._hour: datetime | None = None
        self._unwritten: _Batch | None = None
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="touchstone-usage")

    @property
    def waiting(self) -> int:
        return len(self._events) + (len(self._unwritten.events) if self._unwritten else 0)

    def record(self, event: UsageEvent) -> None:
        if len(self._events) >= MOST_EVENTS:
            if not self.lost:
                logger.error(
                    "usage is lost: %d requests wait for the database, which is the limit", MOST_EVENTS
                )
            self.lost += 1
            return
        group, flags = self._bounded(event.group), event.flags
        if flags:
            flags = self._bounded_flags(event)
        decisions = tuple(map(self._bounded_decision, event.decisions))
        is_same = group is event.group and flags is event.flags and not decisions
        self._events.append(
            event if is_same else replace(event, group=group, flags=flags, decisions=decisions)
        )

    def _bounded_decision(self, decision: LoggedDecision) -> LoggedDecision:
        if self._decision_characters + decision.size > MOST_DECISION_CHARACTERS:
            return replace(decision, steps=())
        self._decision_characters += decision.size
        return decision

    def _bounded(self, group: UsageGroup) -> UsageGroup:
        if group.hour != self._hour:
            self._hour, self._groups, self._flags = group.hour, set(), {}
        if group not in self._groups:
            if len(self._groups) >= MOST_GROUPS:
                return replace(group, run=OTHERS, policy_version="")
            self._groups.add(group)
        return group

    def _bounded_flags(self, event: UsageEvent) -> tuple[tuple[str, int], ...]:
        """Flags name fields that callers send: beyond MOST_FLAGS of an endpoint within an hour they are one."""
        known = self._flags.setdefault(event.group.endpoint, set())
        new = [flag for flag, _ in event.flags if flag not in known]
        known.update(flag for flag in new[: MOST_FLAGS - len(known)] if len(flag) <= LONGEST_FLAG)
        if all(flag in known for flag in new):
            return event.flags
        return tuple((flag if flag in known else OTHERS, items) for flag, items in event.flags)

    def has_room(self, tokens: int) -> bool:
        """Whether an item of so many tokens fits among the samples that wait to be written."""
        room = len(self._samples) < MOST_SAMPLES and self._sample_tokens + tokens <= MOST_SAMPLE_TOKENS
        return room and tokens <= SAMPLE_TOKENS

    def sample(self, sample: SampledItem) -> None:
        self._samples.append(sample)
        self._sample_tokens += sample.result["tokens"]

    def pair(self, pair: ScorePair) -> None:
        """An item scored by two revisions. Dropped where there is no room while the database is unreachable."""
        if len(self._pairs) >= MOST_PAIRS:
            return
        policies = self._policies.setdefault(pair.release, set())
        if len(policies) < MOST_POLICIES:
            policies.add(pair.policy_version)
        known = pair.policy_version in policies
        self._pairs.append(pair if known else replace(pair, policy_version=OTHERS))

    async def run(self) -> None:
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        """Write what waits. What cannot be written waits for the next time, unless its values are at fault: then it is
        dropped, or all that comes after would wait for it."""
        loop = asyncio.get_running_loop()
        while True:
            if self._unwritten is None:
                if not (self._events or self._samples or self._pairs):
                    return
                self._unwritten = _Batch(self._events[:BATCH], self._samples, self._pairs)
                self._events, self._samples, self._pairs = self._events[BATCH:], [], []
                self._sample_tokens = 0
                self._decision_characters = sum(
                    logged.size for event in self._events for logged in event.decisions
                )
            batch = self._unwritten
            try:
                await loop.run_in_executor(self._writer, _write, batch)
                self.written += len(batch.events)
            except (ValueError, DataError):
                self.lost += len(batch.events)
                logger.exception("usage of %d requests is dropped: it cannot be written", len(batch.events))
            except (DatabaseError, InterfaceError, psycopg.Error, OSError) as error:
                logger.warning("usage of %d requests is not written yet: %s", self.waiting, error)
                return
            self._unwritten = None

    def close(self) -> None:
        self._writer.shutdown(wait=True)


def _repetition(item: ScoreInput) -> float:
    try:
        return -repetition.rate(RepetitionPenalty(name="repetition"), item, len).raw
    except RewardError:  # token ids and numbers have no text
        return 0.0


def _write(batch: _Batch) -> None:
    try:
        samples = [replace(sampled, repetition=_repetition(sampled.item)) for sampled in batch.samples]
        write_usage(batch=batch.name, events=batch.events, samples=samples, pairs=batch.pairs)
    finally:
        connection.close()
