"""What each channel of a model brings, as the report of its training shows it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.humanize.templatetags.humanize import intcomma

from apps.core.number_format import decimal, decimal_interval, percent, percent_interval

CHANNELS = {
    "words": "Words",
    "characters": "Characters",
    "observations": "Tool results",
    "structure": "Structure",
    "overlap": "Overlap with the context",
    "embedding": "Embedding",
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
    sentence: str
    tables: list[AblationTable]


def ablation_report(report: Mapping[str, Any] | None) -> AblationReport | None:
    """None for a model without channels, and in reports of earlier versions."""
    found = (report or {}).get("ablation")
    if not found or not found["parts"]:
        return None
    tables = [_table(part, found["parts"][part]) for part in _PARTS if part in found["parts"]]
    return AblationReport(_sentence(found), tables)


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

    def value(variant: Mapping[str, Any] | None) -> str:
        return _NOT_SHOWN if variant is None or variant["value"] is None else shown(variant["value"])

    def row(name: str, variants: Mapping[str, Any]) -> ChannelRow:
        without = variants["without"]
        difference, interval = (without["difference"], without["interval"]) if without else (None, None)
        return ChannelRow(
            CHANNELS[name],
            value(without),
            _NOT_SHOWN if difference is None else shown(difference),
            shown_interval(interval) if interval else "",
            _tone(interval),
            value(variants["alone"]),
        )

    return AblationTable(
        title,
        measure,
        shown(found["value"]),
        shown_interval(found["interval"]) if found["interval"] else "",
        found["n"],
        [row(name, found["channels"][name]) for name in CHANNELS if name in found["channels"]],
    )


def _tone(interval: list[float] | None) -> str:
    if interval is None or interval[0] <= 0 <= interval[1]:
        return "neutral"
    return "good" if interval[0] > 0 else "bad"
