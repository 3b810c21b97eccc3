"""Why an item was selected, in words, and the learning curve as a chart."""

from dataclasses import dataclass
from typing import Any

from apps.active_learning.models import SelectionReason, Strategy

REMARKABLE = 0.75  # the share of the others an item must be at least as good as, for a measure to be named
WORDS = {
    "predictive_gain": "an annotation is expected to improve predictions on real traffic",
    "information_gain": "an annotation is expected to be informative",
    "uncertainty": "the model is uncertain which is better",
    "diversity": "it differs from what was annotated so far",
    "representativeness": "it is similar to real traffic",
}
MEASURES = {
    "predictive_gain": "Predictive gain",
    "information_gain": "Information gain",
    "uncertainty": "Uncertainty",
    "diversity": "Diversity",
    "representativeness": "Representativeness",
}


@dataclass(frozen=True, slots=True)
class ReasonText:
    """because: the remarkable measures in words, the strongest first. shares: (name, percent)."""

    because: str
    shares: list[tuple[str, int]]


def describe_reason(reason: SelectionReason) -> ReasonText:
    strongest = sorted(reason.measures.items(), key=lambda measure: -measure[1])
    parts = [WORDS[name] for name, share in strongest if share >= REMARKABLE]
    if reason.strategy == Strategy.RANDOM:
        because = "It was selected at random."
    elif parts:
        because = f"{_listed(parts)}."
        because = because[0].upper() + because[1:]
    else:
        because = "No measure is high; it ranks best among the remaining items."
    shares = [
        (title, round(100 * reason.measures[name]))
        for name, title in MEASURES.items()
        if name in reason.measures
    ]
    return ReasonText(because, shares)


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])}, and {parts[-1]}"


def curve_chart(curve: dict[str, Any]) -> dict[str, Any]:
    """Accuracies as measured, with their intervals, and the fitted curve up to the target accuracy."""
    points = curve["points"]
    last = points[-1]["labels"]
    end = max(2 * last, min(curve["needed"] or 0, 10 * last))
    grid = [points[0]["labels"] + (end - points[0]["labels"]) * step / 60 for step in range(61)]
    fitted = [[round(n), curve["best"] - curve["drop"] * n ** -curve["rate"]] for n in grid]
    series: list[dict[str, Any]] = [
        {
            "name": "measured",
            "points": [[point["labels"], point["accuracy"]] for point in points],
            "band": [[point["labels"], *point["interval"]] for point in points],
        },
        {"name": "expected", "points": fitted, "dashed": True},
    ]
    if curve["wanted"] is not None:
        series.append(
            {"name": "target", "points": [[grid[0], curve["wanted"]], [end, curve["wanted"]]], "dashed": True}
        )
    return {
        "kind": "line",
        "x": {"name": "comparisons"},
        "y": {"name": "accuracy", "share": True},
        "series": series,
    }


def describe_needed_labels(curve: dict[str, Any], comparisons: int) -> str:
    """How many more comparisons the target accuracy takes, in words."""
    target = f"{100 * curve['wanted']:.1f} %"
    if curve["needed"] is None:
        return (
            f"More comparisons of this kind will not reach {target}: the curve ends at {100 * curve['best']:.1f} %. "
            "Better guidelines, more annotators per item or an unfrozen encoder may."
        )
    more = curve["needed"] - comparisons
    if more <= 0:
        return f"{target} is already reached, by this estimate."
    low, high = curve["interval"]
    low = None if low is None else max(0, low - comparisons)
    spread = f"{_count(low)} to {_count(None if high is None else high - comparisons)}"
    return f"About {more:,} more comparisons for {target} (80 % interval: {spread})."


def _count(number: int | None) -> str:
    return "no finite number" if number is None else f"{max(0, number):,}"
