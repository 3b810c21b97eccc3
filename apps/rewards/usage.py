"""Usage of an endpoint, counted by hour, version, caller, policy run and policy version. Pure; see `accounting`."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from apps.rewards.guard_log import LoggedDecision

# Upper edges; a last bin has what is beyond.
LATENCY_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000)
REWARDS = tuple(step / 4 for step in range(-20, 21))
SUMS = (
    "requests",
    "items",
    "tokens",
    "cached_tokens",
    "repeated",
    "refused",
    "overloaded",
    "failed",
    "uncertain",
    "truncated",
    "reward_sum",
    "reward_squares",
)


@dataclass(frozen=True, slots=True)
class UsageGroup:
    """What is counted together. caller: a key's prefix, or `internal`. version: 0 where none answered."""

    endpoint: int
    hour: datetime
    version: int
    caller: str
    run: str = ""
    policy_version: str = ""


@dataclass(frozen=True, slots=True)
class UsageEvent:
    """One request. receipt: the same for repetitions of a request, if the caller sent a key. status: of HTTP.
    flags: with the number of items that have each. decisions: of a guard, to be logged.
    """

    group: UsageGroup
    status: int
    milliseconds: float
    rewards: tuple[float, ...] = ()
    tokens: int = 0
    cached_tokens: int = 0
    uncertain: int = 0
    truncated: int = 0
    receipt: UUID | None = None
    flags: tuple[tuple[str, int], ...] = ()
    decisions: tuple[LoggedDecision, ...] = ()


@dataclass(slots=True)
class UsageTally:
    """requests: answered. repeated: answered again for the same receipt, and counted nowhere else. refused: with a 4xx
    but 429; overloaded: 429; failed: 5xx. reward_squares: sum of squares."""

    requests: int = 0
    items: int = 0
    tokens: int = 0
    cached_tokens: int = 0
    repeated: int = 0
    refused: int = 0
    overloaded: int = 0
    failed: int = 0
    uncertain: int = 0
    truncated: int = 0
    reward_sum: float = 0.0
    reward_squares: float = 0.0
    latency: list[int] = field(default_factory=lambda: [0] * (len(LATENCY_MS) + 1))
    rewards: list[int] = field(default_factory=lambda: [0] * (len(REWARDS) + 1))

    def add(self, event: UsageEvent, *, is_repeated: bool = False) -> None:
        if event.status == 429:
            self.overloaded += 1
        elif event.status >= 500:
            self.failed += 1
        elif event.status >= 400:
            self.refused += 1
        elif is_repeated:
            self.repeated += 1
        else:
            self._count(event)

    def _count(self, event: UsageEvent) -> None:
        self.requests += 1
        self.items += len(event.rewards)
        self.tokens += event.tokens
        self.cached_tokens += event.cached_tokens
        self.uncertain += event.uncertain
        self.truncated += event.truncated
        self.latency[bisect_right(LATENCY_MS, event.milliseconds)] += 1
        for reward in event.rewards:
            self.rewards[bisect_right(REWARDS, reward)] += 1
            self.reward_sum += reward
            self.reward_squares += reward * reward


def group_usage(events: Iterable[UsageEvent], repeated: Iterable[int] = ()) -> dict[UsageGroup, UsageTally]:
    """repeated: places of events that were counted before."""
    found: dict[UsageGroup, UsageTally] = {}
    counted_before = set(repeated)
    for place, event in enumerate(events):
        found.setdefault(event.group, UsageTally()).add(event, is_repeated=place in counted_before)
    return found


@dataclass(frozen=True, slots=True, order=True)
class FlagGroup:
    """What is counted together of flags."""

    endpoint: int
    hour: datetime
    version: int
    flag: str


def group_flags(events: Sequence[UsageEvent], repeated: Iterable[int] = ()) -> Counter[FlagGroup]:
    """Items by flag. repeated: places of events that were counted before."""
    found: Counter[FlagGroup] = Counter()
    counted_before = set(repeated)
    for place, event in enumerate(events):
        if place not in counted_before:
            group = event.group
            for flag, items in event.flags:
                found[FlagGroup(group.endpoint, group.hour, group.version, flag)] += items
    return found


def quantile(counts: Sequence[int], edges: Sequence[float], share: float) -> float | None:
    """The value below which `share` of the counts lies, interpolated within its bin. None without counts; the last edge
    where it lies beyond."""
    total = sum(counts)
    if not total:
        return None
    wanted, before = share * total, 0
    for place, count in enumerate(counts[:-1]):
        if before + count >= wanted and count:
            low = edges[place - 1] if place else min(0.0, edges[0])
            return low + (edges[place] - low) * (wanted - before) / count
        before += count
    return float(edges[-1])
