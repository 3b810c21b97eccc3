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
BIN_HOURS = {"day": 1, "week": 6, "month": 24}  # of a bar, by span
BIN_NAMES = {1: "hour", 6: "6 hours", 24: "day"}
BY = {
    "version": "Revision",
    "caller": "Key",
    "run": "Policy run",
    "policy_version": "Policy version",
}
MOST_ROWS = 200
PERCENTILE_REQUESTS = 20  # below, one request alone is the 95th percentile


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
        """None of a single item."""
        if self.mean is None or self.tally.items < 2:
            return None
        return max(0.0, self.tally.reward_squares / self.tally.items - self.mean**2) ** 0.5

    @property
    def p50(self) -> float | None:
        if self.tally.requests < 2:
            return None
        return quantile(self.tally.latency, LATENCY_MS, 0.5)

    @property
    def p95(self) -> float | None:
        if self.tally.requests < PERCENTILE_REQUESTS:
            return None
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
    """rows: by the chosen column, most requests first. flags: most items first. drawings: charts by name.

    bin: the time that one bar stands for, in words.
    """

    total: TrafficSummary
    rows: list[TrafficSummary]
    hidden: int
    drawings: dict[str, Any]
    bin: str
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
    # A day is always whole; a longer time begins with the endpoint, not with a month of nothing.
    begin = since if span == "day" else max(since, endpoint.created_at)
    bins = TimeBins(begin, rollups, hours=BIN_HOURS[span])
    counts = list(endpoint.flag_counts.filter(hour__gte=since).order_by("hour"))
    styles = _revision_styles(endpoint) if by == "version" else {}
    drawings = _drawings(total.tally, rows, styles) | {"requests": request_chart(bins, rollups)}
    if counts:
        drawings["flags"] = _flag_drawing(counts, bins)
    flags = flag_totals(counts, rollups)
    return Traffic(total, rows[:MOST_ROWS], max(0, len(rows) - MOST_ROWS), drawings, bins.name, flags)


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


class TimeBins:
    """The time axis: every bin from `since`, or from the first rollup, until now, those without requests too.

    Bins of several hours begin at the local midnight.
    """

    def __init__(self, since: datetime, rollups: Sequence[ScoreRollup], *, hours: int) -> None:
        self._hours, self.name = hours, BIN_NAMES[hours]
        begin = self.bin_begin(min([since, *(rollup.hour for rollup in rollups[:1])]))
        self.begins = []
        while begin <= timezone.now():
            self.begins.append(begin)
            begin += timedelta(hours=hours)  # local time: a day is a day where clocks change too
        self.labels = [f"{begin:%d %b}" if hours == 24 else f"{begin:%d %b %H:%M}" for begin in self.begins]

    def bin_begin(self, at: datetime) -> datetime:
        local = timezone.localtime(at)
        return local.replace(hour=local.hour // self._hours * self._hours, minute=0, second=0, microsecond=0)

    def sums(self, counted: Iterable[tuple[datetime, int]]) -> list[int]:
        """By bin, of counts at times within the axis."""
        found = Counter[datetime]()
        for at, count in counted:
            found[self.bin_begin(at)] += count
        return [found[begin] for begin in self.begins]


def _flag_drawing(counts: Sequence[ScoreFlagCount], bins: TimeBins) -> dict[str, Any]:
    """Of the five most frequent flags."""
    found: dict[str, list[tuple[datetime, int]]] = {}
    for count in counts:
        found.setdefault(count.flag, []).append((count.hour, count.items))
    largest = sorted(found.items(), key=lambda pair: (-sum(items for _, items in pair[1]), pair[0]))[:5]
    return {
        "kind": "line",
        "x": {"labels": bins.labels},
        "y": {"name": f"items per {bins.name}", "count": True, "min": 0},
        "series": [{"name": flag, "points": bins.sums(counted)} for flag, counted in largest],
    }


def request_chart(bins: TimeBins, rollups: Sequence[ScoreRollup]) -> dict[str, Any]:
    answered = [(rollup.hour, rollup.requests) for rollup in rollups]
    rejected = [(rollup.hour, rollup.refused + rollup.overloaded + rollup.failed) for rollup in rollups]
    return {
        "kind": "bar",
        "x": {"labels": bins.labels},
        "y": {"name": f"requests per {bins.name}", "count": True},
        "series": [
            {"name": "answered", "points": bins.sums(answered)},
            {"name": "rejected", "points": bins.sums(rejected)},
        ],
    }


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


def _revision_styles(endpoint: Endpoint) -> dict[str, dict[str, int]]:
    """By revision with one model: the style that its training run has in every chart."""
    rows = endpoint.revisions.values_list("number", "reward_models__training_run")
    runs: dict[str, set[int | None]] = {}
    for number, run in rows:
        runs.setdefault(str(number), set()).add(run)
    return {number: {"style": run} for number, (run, *others) in runs.items() if run and not others}


def _drawings(
    tally: UsageTally, rows: Sequence[TrafficSummary], styles: dict[str, dict[str, int]]
) -> dict[str, Any]:
    """Rewards of the five largest rows, as shares, so that policies of different length compare."""
    largest = [row for row in rows if row.tally.items][:5]
    return {
        "latency": {
            "kind": "bar",
            "x": {
                "name": "latency, up to",
                "unit": "ms",
                "labels": [*(f"{edge:,}" for edge in LATENCY_MS), "more"],
            },
            "y": {"name": "requests", "count": True},
            "n": f"n = {tally.requests:,} requests",
            "series": [{"name": "requests", "points": tally.latency}],
        },
        "rewards": {
            "kind": "line" if tally.items > 1 else "bar",
            "x": {"name": "reward, up to", "labels": [*(f"{edge:g}" for edge in REWARDS), "more"]},
            "y": {"name": "items", "share": True, "min": 0},
            "series": [
                {
                    "name": row.name or "not set",
                    "points": [round(count / row.tally.items, 5) for count in row.tally.rewards],
                }
                | styles.get(row.name, {})
                for row in largest
            ],
        },
    }
