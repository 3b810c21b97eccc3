"""What was read, as tables and drawings."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from apps.core.charts import break_gaps
from apps.monitoring.measures import MEASURES, SampleRow, correlation, root_kl
from apps.monitoring.models import Alert, Reading
from apps.monitoring.rules import Rule, allowed, shown

MOST_POLICIES = 50


@dataclass(frozen=True, slots=True)
class PolicySummary:
    """The sampled trajectories of one policy version. top: the one with the highest reward."""

    name: str
    count: int
    reward: float
    tokens: float
    uncertain: float
    outside: float
    repetition: float
    length: float | None
    root_kl: float | None
    gold: float | None
    top: int


@dataclass(frozen=True, slots=True)
class RuleLine:
    """A rule and what was read last. state: ok, broken, or waiting for more samples."""

    rule: Rule
    label: str
    help: str
    value: str
    baseline: str
    margin: str
    limit: str
    state: str


def policy_summaries(rows: Sequence[SampleRow]) -> list[PolicySummary]:
    """As they came, the newest MOST_POLICIES."""
    groups: dict[str, list[SampleRow]] = {}
    for row in rows:
        groups.setdefault(row.policy_version, []).append(row)
    return [_policy(name, some) for name, some in list(groups.items())[-MOST_POLICIES:]]


def rule_lines(rules: Sequence[Rule], reading: Reading | None, broken: Iterable[Alert]) -> list[RuleLine]:
    open_rules = {alert.rule for alert in broken if alert.is_open}
    return [_line(rule, reading, is_broken=rule.name in open_rules) for rule in rules]


def measures_chart(readings: Sequence[Reading], rules: Sequence[Rule]) -> dict[str, Any] | None:
    """Values less their baselines, over time."""
    series = []
    for rule in {rule.measure: rule for rule in rules}.values():
        found = [
            (reading.at, reading.values[rule.measure])
            for reading in readings
            if rule.measure in reading.values
        ]
        points = break_gaps((at, round(values["value"] - values["baseline"], 4)) for at, values in found)
        if points:
            series.append({"name": rule.name, "points": points})
    if not series:
        return None
    return {
        "kind": "line",
        "x": {"type": "time"},
        "y": {"name": "difference to the baseline"},
        "zoom": True,
        "series": series,
    }


def gold_chart(policies: Sequence[PolicySummary]) -> dict[str, Any] | None:
    """Reward and gold, each in its standard deviations over the policies, by sqrt(KL); by policy where none was
    sent."""
    known = [policy for policy in policies if policy.gold is not None]
    if len(known) < 2:
        return None
    by_kl = all(policy.root_kl is not None for policy in known)
    known.sort(key=lambda policy: policy.root_kl or 0.0) if by_kl else None
    x: dict[str, Any] = (
        {"name": "√KL, nats"}
        if by_kl
        else {"name": "policy version", "labels": [policy.name for policy in known]}
    )
    rewards, gold = ([getattr(policy, name) for policy in known] for name in ("reward", "gold"))
    return {
        "kind": "line",
        "x": x,
        "y": {"name": "standard deviations"},
        "series": [
            {"name": name, "points": _points(known, _standard(values), by_kl=by_kl)}
            for name, values in (("reward", rewards), ("gold", gold))
        ],
    }


def _points(policies: Sequence[PolicySummary], values: Sequence[float], *, by_kl: bool) -> list[Any]:
    if not by_kl:
        return [round(value, 4) for value in values]
    return [
        [round(policy.root_kl or 0.0, 4), round(value, 4)]
        for policy, value in zip(policies, values, strict=True)
    ]


def _standard(values: Sequence[float]) -> list[float]:
    mean, spread = statistics.fmean(values), statistics.pstdev(values)
    return [(value - mean) / spread if spread else 0.0 for value in values]


def _policy(name: str, rows: Sequence[SampleRow]) -> PolicySummary:
    gold = [row.gold for row in rows if row.gold is not None]
    return PolicySummary(
        name=name,
        count=len(rows),
        reward=statistics.fmean(row.reward for row in rows),
        tokens=statistics.fmean(row.tokens for row in rows),
        uncertain=100 * statistics.fmean(row.uncertain for row in rows),
        outside=100 * statistics.fmean(row.outside for row in rows),
        repetition=100 * statistics.fmean(row.repetition for row in rows),
        length=correlation([row.reward for row in rows], [math.log1p(row.tokens) for row in rows]),
        root_kl=root_kl(rows),
        gold=statistics.fmean(gold) if gold else None,
        top=max(rows, key=lambda row: row.reward).pk,
    )


def _line(rule: Rule, reading: Reading | None, *, is_broken: bool) -> RuleLine:
    kind = MEASURES[rule.measure]
    found = reading.values.get(rule.measure) if reading else None
    numbers = {
        name: shown(found[name], kind.unit) if found else "–" for name in ("value", "baseline", "margin")
    }
    state = "broken" if is_broken else "ok" if found else "waiting"
    label = kind.label.removeprefix("the ")
    return RuleLine(rule, label, kind.help, **numbers, limit=allowed(rule), state=state)
