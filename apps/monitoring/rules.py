"""When an alert is raised, as data."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from apps.monitoring.measures import MEASURES, MeasureReading, Reference, SampleRow
from workers.errors import InvalidRecord
from workers.schema.decode import convert

FEWEST, MOST = 30, 2000
MOST_RULES = 50


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An alert where `measure` passes its baseline by more than `above`, for sure, over the newest `window` scored
    trajectories of a run, once there are `least`. name: of the rule; one alert of it for a version and a run.

    asks: comparisons of the trajectories behind the alert that annotators get immediately. turns: once they are
    annotated, a retraining cycle runs automatically: a new model is trained, compared, released and promoted.
    """

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=60)]
    measure: str
    above: Annotated[float, msgspec.Meta(ge=0, le=1000)]
    window: Annotated[int, msgspec.Meta(ge=FEWEST, le=MOST)] = 300
    least: Annotated[int, msgspec.Meta(ge=FEWEST, le=MOST)] = 100
    asks: Annotated[int, msgspec.Meta(ge=0, le=500)] = 0
    turns: bool = False


DEFAULTS = (
    Rule("reward drift", "reward_psi", 0.5),
    Rule("length drift", "tokens_psi", 0.5),
    Rule("high uncertainty", "uncertain", 0.15),
    Rule("out of distribution", "out_of_distribution", 0.1),
    Rule("length correlation", "length_correlation", 0.25),
    Rule("step count correlation", "steps_correlation", 0.25),
    Rule("repetition", "repetition", 0.1),
    Rule("overoptimization", "gold", 0.5),
    Rule("annotator disagreement", "disagreement", 0.1),
)


def parse_rules(value: Any) -> tuple[Rule, ...]:
    """Raises InvalidRecord with the pointer of the bad field."""
    rules = convert(value, tuple[Rule, ...], pointer="/rules")
    if len(rules) > MOST_RULES:
        raise InvalidRecord(f"at most {MOST_RULES} rules.", pointer="/rules")
    names: set[str] = set()
    for index, rule in enumerate(rules):
        if rule.measure not in MEASURES:
            raise InvalidRecord(
                f"unknown measure {rule.measure!r}; known are {', '.join(MEASURES)}.",
                pointer=f"/rules/{index}/measure",
            )
        if rule.least > rule.window:
            raise InvalidRecord("is more than the window holds.", pointer=f"/rules/{index}/least")
        if rule.turns and not rule.asks:
            raise InvalidRecord(
                "`turns` needs comparisons to annotate: set `asks` to at least 1.",
                pointer=f"/rules/{index}/asks",
            )
        if rule.name in names:
            raise InvalidRecord(f"there are two rules {rule.name!r}.", pointer=f"/rules/{index}/name")
        names.add(rule.name)
    return rules


def rules_as_json(rules: Sequence[Rule]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = msgspec.to_builtins(rules)
    return found


def readings(
    rules: Sequence[Rule], rows: Sequence[SampleRow], reference: Reference
) -> dict[str, MeasureReading]:
    """By rule; without those that have too little to go by."""
    found = {}
    for rule in rules:
        window = rows[-rule.window :]
        if len(window) < rule.least:
            continue
        reading = MEASURES[rule.measure].measure(window, reference)
        if reading is not None:
            found[rule.name] = reading
    return found


def describe_reading(rule: Rule, reading: MeasureReading, *, of: str, run: str, policy_version: str) -> str:
    """A sentence. of: what the baseline is of."""
    kind = MEASURES[rule.measure]
    where = f"run {run}" if run else "calls that name no run"
    if policy_version:
        where += f", up to policy version {policy_version}"
    against = f", {shown(reading.baseline, kind.unit)} {of}" if reading.baseline else ""
    label = f"{kind.label[0].upper()}{kind.label[1:]}"
    return (
        f"{label} is {shown(reading.value, kind.unit)} over the newest {reading.count} {kind.of} of "
        f"{where}{against}; {allowed(rule)} is allowed."
    )


def allowed(rule: Rule) -> str:
    """How far from its baseline a measure may be, in words."""
    kind = MEASURES[rule.measure]
    return f"up to {shown(rule.above, kind.unit)} {'in either direction' if kind.two_sided else 'more'}"


def shown(value: float, unit: str) -> str:
    return f"{100 * value:.1f} %" if unit == "%" else f"{value:.2f}"
