"""What was read, as tables and drawings."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from apps.annotation.feedback.records import BY_JUDGES
from apps.annotation.models import Annotation
from apps.monitoring.measures import MEASURES, Row, correlation, root_kl
from apps.monitoring.models import Alert, Reading, Turn
from apps.monitoring.rules import Rule, shown

MOST_POLICIES = 50
_WORK = (Turn.Stage.FREEZING, Turn.Stage.TRAINING, Turn.Stage.COMPARING, Turn.Stage.TRYING)


@dataclass(frozen=True, slots=True)
class Policy:
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
class Line:
    """A rule and what was read last. state: fine, broken, or waiting for more."""

    rule: Rule
    label: str
    help: str
    value: str
    baseline: str
    margin: str
    limit: str
    state: str


@dataclass(frozen=True, slots=True)
class Step:
    """A stage of a turn. state: done, now, ready (waits for a person), or next. seconds: that it took so far."""

    stage: str
    label: str
    state: str
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Span:
    """A stage as a bar. begin, width: of the drawing. colour: the number of a token."""

    label: str
    seconds: float
    begin: str
    width: str
    colour: int


@dataclass(frozen=True, slots=True)
class Timed:
    """seconds: from the last judgement to the served reward, None where nobody judged. work: of the stages drawn."""

    turn: Turn
    seconds: float | None
    work: float
    spans: list[Span]


def steps_of(turn: Turn) -> list[Step]:
    """As they follow each other. Of a stopped one as far as it came."""
    stages = [stage for stage in Turn.Stage if stage != Turn.Stage.STOPPED]
    entered = {name: datetime.fromisoformat(at) for name, at in turn.entered.items()}
    came = [stage for stage in stages if stage in entered]
    found = []
    for stage in stages:
        if stage not in entered:
            if turn.is_open and not (stage == Turn.Stage.ASKING and came):
                found.append(Step(stage, stage.label, "next", None))
            continue
        later = [at for at in entered.values() if at > entered[stage]]
        end = min(later, default=None if stage == turn.stage else entered[stage])
        state = "done"
        if stage == turn.stage and turn.is_open:
            state = "ready" if turn.is_ready else "now"
        seconds = None if end is None or stage == Turn.Stage.DONE else (end - entered[stage]).total_seconds()
        found.append(Step(stage, stage.label, state, seconds))
    return found


def seconds_to_served(turn: Turn) -> float | None:
    """From the last judgement that it learnt from to when the model answered; None where it never did."""
    if turn.stage != Turn.Stage.DONE or turn.ended_at is None:
        return None
    said = Annotation.objects.filter(
        assignment__item__campaign__project=turn.endpoint.project, created_at__lt=turn.entered["freezing"]
    )
    last = said.exclude(BY_JUDGES).order_by("-created_at").values_list("created_at", flat=True).first()
    return None if last is None else (turn.ended_at - last).total_seconds()


def times_of(turns: Sequence[Turn]) -> list[Timed]:
    """Of turns that ended well, in their order; the longest fills the width."""
    found = [
        (turn, [step for step in steps_of(turn) if step.seconds is not None and step.stage in _WORK])
        for turn in turns
    ]
    longest = max((sum(step.seconds or 0 for step in steps) for _, steps in found), default=0) or 1.0
    return [_timed(turn, steps, longest) for turn, steps in found]


def _timed(turn: Turn, steps: Sequence[Step], longest: float) -> Timed:
    spans, begin = [], 0.0
    for step in steps:
        width = 100 * (step.seconds or 0) / longest
        spans.append(
            Span(step.label, step.seconds or 0, f"{begin:.2f}%", f"{width:.2f}%", _WORK.index(step.stage) + 1)
        )
        begin += width
    return Timed(turn, seconds_to_served(turn), sum(one.seconds for one in spans), spans)


def policies_of(rows: Sequence[Row]) -> list[Policy]:
    """As they came, the newest MOST_POLICIES."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.policy_version, []).append(row)
    return [_policy(name, some) for name, some in list(groups.items())[-MOST_POLICIES:]]


def lines_of(rules: Sequence[Rule], reading: Reading | None, broken: Iterable[Alert]) -> list[Line]:
    open_rules = {alert.rule for alert in broken if alert.is_open}
    return [_line(rule, reading, is_broken=rule.name in open_rules) for rule in rules]


def drawn_measures(readings: Sequence[Reading], rules: Sequence[Rule]) -> dict[str, Any] | None:
    """Values less their baselines, over time."""
    series = []
    for rule in {rule.measure: rule for rule in rules}.values():
        found = [(one.at, one.values[rule.measure]) for one in readings if rule.measure in one.values]
        points = [[at.timestamp() * 1000, round(said["value"] - said["baseline"], 4)] for at, said in found]
        if points:
            series.append({"name": rule.name, "points": points})
    if not series:
        return None
    return {
        "kind": "line",
        "x": {"type": "time"},
        "y": {"name": "beyond the baseline"},
        "series": series,
    }


def drawn_gold(policies: Sequence[Policy]) -> dict[str, Any] | None:
    """Reward and gold, each in its standard deviations over the policies, by sqrt(KL); by policy where none was
    sent."""
    known = [one for one in policies if one.gold is not None]
    if len(known) < 2:
        return None
    by_kl = all(one.root_kl is not None for one in known)
    known.sort(key=lambda one: one.root_kl or 0.0) if by_kl else None
    x: dict[str, Any] = (
        {"name": "√KL, nats"} if by_kl else {"name": "policy version", "labels": [one.name for one in known]}
    )
    rewards, gold = ([getattr(one, name) for one in known] for name in ("reward", "gold"))
    return {
        "kind": "line",
        "x": x,
        "y": {"name": "standard deviations"},
        "series": [
            {"name": name, "points": _points(known, _standard(values), by_kl=by_kl)}
            for name, values in (("reward", rewards), ("gold", gold))
        ],
    }


def _points(policies: Sequence[Policy], values: Sequence[float], *, by_kl: bool) -> list[Any]:
    if not by_kl:
        return [round(value, 4) for value in values]
    return [
        [round(one.root_kl or 0.0, 4), round(value, 4)] for one, value in zip(policies, values, strict=True)
    ]


def _standard(values: Sequence[float]) -> list[float]:
    mean, spread = statistics.fmean(values), statistics.pstdev(values)
    return [(value - mean) / spread if spread else 0.0 for value in values]


def _policy(name: str, rows: Sequence[Row]) -> Policy:
    gold = [row.gold for row in rows if row.gold is not None]
    return Policy(
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


def _line(rule: Rule, reading: Reading | None, *, is_broken: bool) -> Line:
    kind = MEASURES[rule.measure]
    found = reading.values.get(rule.measure) if reading else None
    numbers = {
        name: shown(found[name], kind.unit) if found else "–" for name in ("value", "baseline", "margin")
    }
    state = "broken" if is_broken else "fine" if found else "waiting"
    label = kind.label.removeprefix("the ")
    return Line(
        rule, label, kind.help, **numbers, limit=f"up to {shown(rule.above, kind.unit)} more", state=state
    )
