"""Traffic of an endpoint: its rollups summed, and as charts."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone

from apps.rewards.models import Endpoint, ScoreFlagCount, ScoreRollup
from apps.rewards.usage import LATENCY_MS, REWARDS, SUMS, UsageTally, quantile

SPANS = {"day": timedelta(days=1), "week": timedelta(days=7), "month": timedelta(days=30)}
BY = {
    "version": "Revision",
    "caller": "Key",
    "run": "Policy run",
    "policy_version": "Policy version",
}
MOST_ROWS = 200


@dataclass(frozen=True, slots=True)
class TrafficSummary:
    """Numbers of the usage page. Rewards: on the reward scale; milliseconds: within the service."""

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
    def rejected(self) -> int:
        return self.tally.refused + self.tally.overloaded + self.tally.failed


@dataclass(frozen=True, slots=True)
class FlagTotal:
    """Scored items of a version that have a flag. of: scored items of the version."""

    flag: str
    version: int
    items: int
    of: int

    @property
    def share(self) -> float:
        return 100 * self.items / self.of if self.of else 0.0


@dataclass(frozen=True, slots=True)
class Traffic:
    """rows: by the chosen column, most requests first. flags: most items first. drawings: by name, for charts.js."""

    total: TrafficSummary
    rows: list[TrafficSummary]
    hidden: int
    drawings: dict[str, Any]
    flags: list[FlagTotal] = field(default_factory=list)


def traffic_of(endpoint: Endpoint, *, span: str, by: str) -> Traffic:
    since = timezone.now() - SPANS[span]
    rollups = list(endpoint.rollups.filter(hour__gte=since).order_by("hour"))
    groups: dict[str, list[ScoreRollup]] = {}
    for rollup in rollups:
        groups.setdefault(str(getattr(rollup, by)), []).append(rollup)
    rows = [TrafficSummary(name, sum_rollups(group)) for name, group in groups.items()]
    rows.sort(key=lambda row: (-row.tally.requests, row.name))
    total = TrafficSummary("all", sum_rollups(rollups))
    hours = _hours(max(since, endpoint.created_at), rollups)
    counts = list(endpoint.flag_counts.filter(hour__gte=since).order_by("hour"))
    drawings = _drawings(total.tally, hours, rollups, rows)
    if counts:
        drawings["flags"] = _flag_drawing(counts, hours)
    flags = flag_totals(counts, rollups)
    return Traffic(total, rows[:MOST_ROWS], max(0, len(rows) - MOST_ROWS), drawings, flags)


def flag_totals(counts: Iterable[ScoreFlagCount], rollups: Iterable[ScoreRollup]) -> list[FlagTotal]:
    """By flag and version."""
    items = Counter[int]()
    for rollup in rollups:
        items[rollup.version] += rollup.items
    found = Counter[tuple[str, int]]()
    for count in counts:
        found[count.flag, count.version] += count.items
    totals = [FlagTotal(flag, version, number, items[version]) for (flag, version), number in found.items()]
    return sorted(totals, key=lambda total: (-total.items, total.flag, total.version))


def flag_days(endpoint: Endpoint, *, span: str) -> list[dict[str, Any]]:
    """[{day, version, flag, items}], oldest first, in UTC."""
    since = timezone.now() - SPANS[span]
    found = Counter[tuple[str, int, str]]()
    for count in endpoint.flag_counts.filter(hour__gte=since):
        found[count.hour.astimezone(UTC).date().isoformat(), count.version, count.flag] += count.items
    return [
        {"day": day, "version": version, "flag": flag, "items": items}
        for (day, version, flag), items in sorted(found.items())
    ]


def _flag_drawing(counts: Sequence[ScoreFlagCount], hours: Sequence[datetime]) -> dict[str, Any]:
    """Of the five most frequent flags."""
    found: dict[str, Counter[datetime]] = {}
    for count in counts:
        found.setdefault(count.flag, Counter())[count.hour] += count.items
    largest = sorted(found.items(), key=lambda pair: (-pair[1].total(), pair[0]))[:5]
    return {
        "kind": "line",
        "x": {"labels": [f"{timezone.localtime(hour):%d %b %H:%M}" for hour in hours]},
        "y": {"name": "items per hour", "min": 0},
        "series": [{"name": flag, "points": [by_hour[hour] for hour in hours]} for flag, by_hour in largest],
    }


def _hours(since: datetime, rollups: Sequence[ScoreRollup]) -> list[datetime]:
    """Every hour from `since`, or from the first rollup, until now: those without requests too."""
    first = min([since, *(rollup.hour for rollup in rollups[:1])])
    hour = first.replace(minute=0, second=0, microsecond=0)
    hours = []
    while hour <= timezone.now():
        hours.append(hour)
        hour += timedelta(hours=1)
    return hours


def sum_rollups(rollups: Iterable[ScoreRollup]) -> UsageTally:
    total = UsageTally()
    for rollup in rollups:
        for name in SUMS:
            setattr(total, name, getattr(total, name) + getattr(rollup, name))
        for name in ("latency", "rewards"):
            bins = getattr(total, name)
            for place, count in enumerate(getattr(rollup, name)):
                bins[place] += count
    return total


def _drawings(
    tally: UsageTally,
    hours: Sequence[datetime],
    rollups: Sequence[ScoreRollup],
    rows: Sequence[TrafficSummary],
) -> dict[str, Any]:
    """Rewards of the five largest rows, as shares, so that policies of different length compare."""
    by_hour = {hour: [0, 0] for hour in hours}
    for rollup in rollups:
        counts = by_hour.setdefault(rollup.hour, [0, 0])
        counts[0] += rollup.requests
        counts[1] += rollup.refused + rollup.overloaded + rollup.failed
    labels = [f"{timezone.localtime(hour):%d %b %H:%M}" for hour in by_hour]
    largest = [row for row in rows if row.tally.items][:5]
    return {
        "requests": {
            "kind": "bar",
            "x": {"labels": labels},
            "y": {"name": "requests per hour"},
            "series": [
                {"name": "answered", "points": [counts[0] for counts in by_hour.values()]},
                {"name": "rejected", "points": [counts[1] for counts in by_hour.values()]},
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
            "y": {"name": "% of items", "min": 0},
            "series": [
                {
                    "name": row.name or "not set",
                    "points": [round(100 * count / row.tally.items, 3) for count in row.tally.rewards],
                }
                for row in largest
            ],
        },
    }
