"""What the rollups of an endpoint say: added up, and as drawings."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from apps.rewards.models import Endpoint, ScoreRollup
from apps.rewards.usage import LATENCY_MS, REWARDS, SUMS, UsageTally, quantile

SPANS = {"day": timedelta(days=1), "week": timedelta(days=7), "month": timedelta(days=30)}
BY = {
    "version": "Revision",
    "caller": "Key",
    "run": "Run",
    "policy_version": "Policy version",
}
MOST_ROWS = 200


@dataclass(frozen=True, slots=True)
class Summary:
    """What was asked, in the numbers people look at. Rewards: on the reward scale; milliseconds: within the service."""

    name: str
    tally: UsageTally

    @property
    def mean(self) -> float | None:
        return self.tally.reward_sum / self.tally.items if self.tally.items else None

    @property
    def deviation(self) -> float | None:
        if self.mean is None:
            return None
        return max(0.0, self.tally.reward_squares / self.tally.items - self.mean**2) ** 0.5

    @property
    def p50(self) -> float | None:
        return quantile(self.tally.latency, LATENCY_MS, 0.5)

    @property
    def p95(self) -> float | None:
        return quantile(self.tally.latency, LATENCY_MS, 0.95)

    @property
    def cached(self) -> float:
        return 100 * self.tally.cached_tokens / self.tally.tokens if self.tally.tokens else 0.0

    @property
    def uncertain(self) -> float:
        return 100 * self.tally.uncertain / self.tally.items if self.tally.items else 0.0

    @property
    def truncated(self) -> float:
        return 100 * self.tally.truncated / self.tally.items if self.tally.items else 0.0

    @property
    def turned_away(self) -> int:
        return self.tally.refused + self.tally.overloaded + self.tally.failed


@dataclass(frozen=True, slots=True)
class Traffic:
    """rows: by what was asked for, most requests first. drawings: by name, for charts.js."""

    whole: Summary
    rows: list[Summary]
    hidden: int
    drawings: dict[str, Any]


def traffic_of(endpoint: Endpoint, *, span: str, by: str) -> Traffic:
    since = timezone.now() - SPANS[span]
    rollups = list(endpoint.rollups.filter(hour__gte=since).order_by("hour"))
    groups: dict[str, list[ScoreRollup]] = {}
    for one in rollups:
        groups.setdefault(str(getattr(one, by)), []).append(one)
    rows = [Summary(name, added(some)) for name, some in groups.items()]
    rows.sort(key=lambda one: (-one.tally.requests, one.name))
    whole = Summary("all", added(rollups))
    return Traffic(
        whole, rows[:MOST_ROWS], max(0, len(rows) - MOST_ROWS), _drawings(whole.tally, rollups, rows)
    )


def added(rollups: Iterable[ScoreRollup]) -> UsageTally:
    total = UsageTally()
    for one in rollups:
        for name in SUMS:
            setattr(total, name, getattr(total, name) + getattr(one, name))
        for name in ("latency", "rewards"):
            bins = getattr(total, name)
            for place, count in enumerate(getattr(one, name)):
                bins[place] += count
    return total


def _drawings(tally: UsageTally, rollups: Sequence[ScoreRollup], rows: Sequence[Summary]) -> dict[str, Any]:
    """Rewards of the five largest rows, as shares, so that policies of different length compare."""
    hours: dict[datetime, list[int]] = {}
    for one in rollups:
        counts = hours.setdefault(one.hour, [0, 0])
        counts[0] += one.requests
        counts[1] += one.refused + one.overloaded + one.failed
    labels = [f"{timezone.localtime(hour):%d %b %H:%M}" for hour in hours]
    largest = [one for one in rows if one.tally.items][:5]
    return {
        "requests": {
            "kind": "bar",
            "x": {"labels": labels},
            "y": {"name": "requests an hour"},
            "series": [
                {"name": "answered", "points": [counts[0] for counts in hours.values()]},
                {"name": "turned away", "points": [counts[1] for counts in hours.values()]},
            ],
        },
        "latency": {
            "kind": "bar",
            "x": {"name": "milliseconds, up to", "labels": [*(f"{edge:,}" for edge in LATENCY_MS), "more"]},
            "y": {"name": "requests"},
            "series": [{"name": "requests", "points": tally.latency}],
        },
        "rewards": {
            "kind": "line",
            "x": {"name": "reward, up to", "labels": [*(f"{edge:g}" for edge in REWARDS), "more"]},
            "y": {"name": "per cent of items", "min": 0},
            "series": [
                {
                    "name": one.name or "none said",
                    "points": [round(100 * count / one.tally.items, 3) for count in one.tally.rewards],
                }
                for one in largest
            ],
        },
    }
