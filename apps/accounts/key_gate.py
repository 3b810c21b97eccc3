"""What a key's use is held to: the networks it may come from, requests and tokens per minute, tokens per day.

Counted in memory, in each process: with several processes a key may have each limit per minute in each of them. Tokens
per day are those of the usage table, which all replicas write, and what this process has counted since.
"""

import ipaddress
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from apps.accounts.models import ApiKey
from apps.core.errors import Forbidden, TooManyRequests
from apps.core.http.client_address import Network, parse_address

MINUTE = 60.0
REQUESTS, TOKENS, DAY = "requests_per_minute", "tokens_per_minute", "tokens_per_day"
_WORDS = {REQUESTS: "requests per minute", TOKENS: "tokens per minute", DAY: "tokens per day (UTC)"}


@dataclass(frozen=True, slots=True)
class HeldTo:
    """The limits that hold for a key, 0 where none does; networks: empty is anywhere."""

    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    tokens_per_day: int = 0
    networks: tuple[Network, ...] = ()


NOT_HELD = HeldTo()


class OverKeyLimit(TooManyRequests):
    """name: of the limit."""

    def __init__(self, name: str, limit: int, *, retry_after: int) -> None:
        super().__init__(
            f"This key may have {limit:,} {_WORDS[name]}, and has had them. Try again in {retry_after} s, or ask an "
            "owner of the project for a higher limit.",
            retry_after=retry_after,
        )
        self.name, self.limit = name, limit


def held_to(key: ApiKey) -> HeldTo:
    """The key's own limits, else those of the settings."""

    def limit(own: int | None, default: int) -> int:
        return default if own is None else own

    return HeldTo(
        limit(key.requests_per_minute, settings.KEY_REQUESTS_PER_MINUTE),
        limit(key.tokens_per_minute, settings.KEY_TOKENS_PER_MINUTE),
        limit(key.tokens_per_day, settings.KEY_TOKENS_PER_DAY),
        tuple(ipaddress.ip_network(text) for text in key.allowed_networks),
    )


def check_address(networks: Sequence[Network], address: str) -> None:
    """Raises Forbidden, which does not tell from where the key may be used."""
    if not networks:
        return
    parsed = parse_address(address)
    if parsed is None or not any(parsed in network for network in networks):
        raise Forbidden(
            "This key may not be used from this address. An owner of the project can change that."
        )


@dataclass(slots=True)
class _Bucket:
    """Filled evenly over a minute. What is taken may go below zero: a request is larger than what was left."""

    level: float
    at: float

    def fill(self, limit: int, now: float) -> None:
        self.level = min(self.level + (now - self.at) * limit / MINUTE, float(limit))
        self.at = now


@dataclass(slots=True)
class _Today:
    """known: tokens of the usage table. since: when, and how many, that may not be in it yet."""

    known: int = 0
    since: deque[tuple[float, int]] = field(default_factory=deque)

    def total(self) -> int:
        return self.known + sum(tokens for _, tokens in self.since)


class KeyGate:
    """Of one process; from any thread. clock: seconds. Keys are named by their prefix."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: dict[tuple[str, str], _Bucket] = {}
        self._today: dict[str, _Today] = {}
        self._day = timezone.now().date()

    def admit(self, name: str, limits: HeldTo) -> None:
        """Count a request. Raises OverKeyLimit, and then counts nothing: also where tokens are spent already."""
        with self._lock:
            self._check_tokens(name, limits)
            if limits.requests_per_minute:
                bucket = self._bucket(name, REQUESTS, limits.requests_per_minute)
                if bucket.level < 1:
                    raise _over(REQUESTS, limits.requests_per_minute, 1 - bucket.level)
                bucket.level -= 1

    def charge(self, name: str, limits: HeldTo, tokens: int) -> None:
        """Count tokens before they are scored. Raises OverKeyLimit where those of before have spent the limit."""
        with self._lock:
            self._check_tokens(name, limits)
            if limits.tokens_per_minute:
                self._bucket(name, TOKENS, limits.tokens_per_minute).level -= tokens
            if limits.tokens_per_day:
                self._of_today(name).since.append((self._clock(), tokens))

    def headers(self, name: str, limits: HeldTo) -> dict[str, str]:
        """`RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers); none without limits."""
        policies, states = [], []
        with self._lock:
            for kind in (REQUESTS, TOKENS):
                if limit := getattr(limits, kind):
                    bucket = self._bucket(name, kind, limit)
                    seconds = math.ceil((limit - bucket.level) * MINUTE / limit)
                    policies.append(f'"{kind}";q={limit};w=60')
                    states.append(f'"{kind}";r={max(int(bucket.level), 0)};t={seconds}')
            if limit := limits.tokens_per_day:
                rest = max(limit - self._of_today(name).total(), 0)
                policies.append(f'"{DAY}";q={limit};w=86400')
                states.append(f'"{DAY}";r={rest};t={_to_midnight(timezone.now())}')
        return {"RateLimit-Policy": ", ".join(policies), "RateLimit": ", ".join(states)} if policies else {}

    def learn(self, used: Mapping[str, int], *, before: float) -> None:
        """used: today's tokens by key, as the usage table has them. before: of the clock; what was counted earlier is
        in it."""
        with self._lock:
            for name, tokens in used.items():
                today = self._of_today(name)
                today.known = tokens
                while today.since and today.since[0][0] < before:
                    today.since.popleft()

    def _check_tokens(self, name: str, limits: HeldTo) -> None:
        if limit := limits.tokens_per_minute:
            bucket = self._bucket(name, TOKENS, limit)
            if bucket.level <= 0:
                raise _over(TOKENS, limit, 1 - bucket.level)
        if (limit := limits.tokens_per_day) and self._of_today(name).total() >= limit:
            raise OverKeyLimit(DAY, limit, retry_after=_to_midnight(timezone.now()))

    def _bucket(self, name: str, kind: str, limit: int) -> _Bucket:
        now = self._clock()
        bucket = self._buckets.setdefault((name, kind), _Bucket(float(limit), now))
        bucket.fill(limit, now)
        return bucket

    def _of_today(self, name: str) -> _Today:
        day = timezone.now().date()
        if day != self._day:
            self._day, self._today = day, {}
        return self._today.setdefault(name, _Today())


def _over(name: str, limit: int, missing: float) -> OverKeyLimit:
    return OverKeyLimit(name, limit, retry_after=max(math.ceil(missing * MINUTE / limit), 1))


def _to_midnight(now: datetime) -> int:
    tomorrow = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return max(math.ceil((tomorrow - now).total_seconds()), 1)


gate = KeyGate()  # of the web process; `rewards` has one in its state
