"""What each channel of a model brings, as the report of its training shows it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.humanize.templatetags.humanize import intcomma

from apps.core.number_format import (
    decimal,
    decimal_interval,
    percent,
    percent_interval,
    points,
    points_interval,
)

CHANNELS = {
    "words": "Words",
    "characters": "Characters",
    "observations": "Tool results",
    "structure": "Structure",
    "overlap": "Overlap with the context",
    "embedding": "Embedding",
    "conditions": "Conditions",
}
_NOT_SHOWN = "–"
# By the part of a report: its name, that of its value, and whether that is a share, shown in percent.
_PARTS = {
    "preference": ("By comparisons", "Accuracy", True),
    "outcome": ("By outcomes", "AUC", False),
    "scores": ("By ratings and scores", "Correlation", False),
    "steps": ("By first errors", "Accuracy", True),
    "located": ("By error localisation", "Accuracy", True),
    "labels": ("By step labels", "Accuracy", True),
}


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """All as it is shown. brings: result of all channels less that without this one, with its interval. tone: whether
    the channel is shown to help (good), to harm (bad), or neither (neutral)."""

    name: str
    without: str
    brings: str
    interval: str
    tone: str
    alone: str


@dataclass(frozen=True, slots=True)
class AblationTable:
    """value, interval: of all channels. n: what was measured on."""

    title: str
    measure: str
    value: str
    interval: str
    n: int
    rows: list[ChannelRow]


@dataclass(frozen=True, slots=True)
class AblationReport:
    """prior: what the weights of a parent bring, in words; empty without one."""

    sentence: str
    prior: str
    tables: list[AblationTable]


def ablation_report(report: Mapping[str, Any] | None) -> AblationReport | None:
    """None for a model without channels and parent, and in reports of earlier versions."""
    found = (report or {}).get("ablation") or {}
    train = (report or {}).get("train") or {}
    parts = found.get("parts") or {}
    tables = [_table(part, parts[part]) for part in _PARTS if part in parts]
    prior = _prior(train["prior"], (train.get("parent") or {}).get("name", "")) if train.get("prior") else ""
    return AblationReport(_sentence(found) if tables else "", prior, tables) if tables or prior else None


def _prior(prior: Mapping[str, Any], name: str) -> str:
    factor, losses = prior["factor"], prior["losses"]
    parent = f"The weights of the parent {name}"
    if not losses:
        return f"{parent} were not used: there are too few tasks to choose how much of them to use."
    tried = ", ".join(f"{decimal(losses[key], 4)} for {key}" for key in sorted(losses, key=float))
    used = "were not used" if not factor else f"times {factor:g} are the mean of the prior"
    return f"{parent} {used}, by the loss on held-out tasks of the training split: {tried} times the weights."


def _sentence(found: Mapping[str, Any]) -> str:
    missing = f" Not fitted in that time: {', '.join(found['missing'])}." if found["missing"] else ""
    return (
        f"The model was fitted to {intcomma(found['examples'])} training examples again without each channel, with the "
        "penalty of the model, and with each channel alone, with its own penalty. One split: an interval is about "
        f"the held-out tasks only. It took {found['seconds']:.0f} s.{missing}"
    )


def _table(part: str, found: Mapping[str, Any]) -> AblationTable:
    title, measure, is_share = _PARTS[part]
    shown, shown_interval = (percent, percent_interval) if is_share else (decimal, decimal_interval)
    brings, brings_interval = (points, points_interval) if is_share else (decimal, decimal_interval)

    def value(variant: Mapping[str, Any] | None) -> str:
        return _NOT_SHOWN if variant is None or variant["value"] is None else shown(variant["value"])

    def row(name: str, variants: Mapping[str, Any]) -> ChannelRow:
        without = variants["without"]
        difference, interval = (without["difference"], without["interval"]) if without else (None, None)
        return ChannelRow(
            name,
            value(without),
            _NOT_SHOWN if difference is None else brings(difference),
            brings_interval(interval) if interval else "",
            _tone(interval),
            value(variants["alone"]),
        )

    rows = [row(CHANNELS[name], found["channels"][name]) for name in CHANNELS if name in found["channels"]]
    if parent := found.get("parent"):
        rows.insert(0, row("Parent model", {"without": parent, "alone": None}))
    return AblationTable(
        title,
        measure,
        shown(found["value"]),
        shown_interval(found["interval"]) if found["interval"] else "",
        found["n"],
        rows,
    )


def _tone(interval: list[float] | None) -> str:
    if interval is None or interval[0] <= 0 <= interval[1]:
        return "neutral"
    return "good" if interval[0] > 0 else "bad"
