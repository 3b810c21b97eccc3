"""The events of a training run as charts and as words."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

MAX_POINTS = 400
ALL = "validation"


def curves(events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Two charts for charts.js: the losses, and the validation accuracy."""
    found = _points(events)
    losses = [("training loss", found.training), ("validation loss", found.validation)]
    return {
        "loss": _line_chart("loss", losses),
        "accuracy": _line_chart("accuracy", list(found.accuracy.items()), bounds=(0, 1)),
    }


def overlaid_curves(runs: Iterable[tuple[str, Iterable[dict[str, Any]]]]) -> dict[str, Any]:
    """Of several runs by name: validation loss, validation accuracy, and training loss."""
    found = [(name, _points(events)) for name, events in runs]
    accuracies = [
        (name if what == ALL else f"{name}, {what}", points)
        for name, run_points in found
        for what, points in run_points.accuracy.items()
    ]
    return {
        "validation": _line_chart("loss", [(name, points.validation) for name, points in found]),
        "accuracy": _line_chart("accuracy", accuracies, bounds=(0, 1)),
        "training": _line_chart("loss", [(name, points.training) for name, points in found]),
    }


@dataclass
class _Points:
    """By step; the last line of a step counts. accuracy: by objective, ALL where there is only one."""

    training: dict[int, float] = field(default_factory=dict)
    validation: dict[int, float] = field(default_factory=dict)
    accuracy: dict[str, dict[int, float]] = field(default_factory=dict)


def _points(events: Iterable[dict[str, Any]]) -> _Points:
    found = _Points()
    for event in events:
        step = event.get("step")
        if step is None:
            continue
        if event.get("loss") is not None:
            found.training[step] = event["loss"]
        for name, value in (event.get("validation") or {}).items():
            if name == "loss" and value is not None:
                found.validation[step] = value
            elif name.endswith("accuracy") and value is not None:
                what = name.removesuffix("accuracy").strip() or ALL
                found.accuracy.setdefault(what, {})[step] = value
    return found


def messages(events: Iterable[dict[str, Any]]) -> list[str]:
    return [str(event["message"]) for event in events if event.get("message")]


def chart_in_words(chart: dict[str, Any]) -> str:
    """For screen readers."""
    sentences = []
    for series in chart["series"]:
        first, last = series["points"][0][1], series["points"][-1][1]
        sentences.append(f"{series['name']} from {first:.3f} to {last:.3f}")
    return "; ".join(sentences) or "no data yet"


def _line_chart(
    name: str, series: list[tuple[str, dict[int, float]]], *, bounds: tuple[float, float] | None = None
) -> dict[str, Any]:
    return {
        "kind": "line",
        "x": {"name": "step"},
        "y": {"name": name} | ({"min": bounds[0], "max": bounds[1]} if bounds else {}),
        "series": [{"name": label, "points": _downsampled(points)} for label, points in series if points],
    }


def _downsampled(points: dict[int, float]) -> list[list[float]]:
    """At most MAX_POINTS of them, evenly spaced, always with the last one."""
    ordered = sorted(points.items())
    every = -(-len(ordered) // MAX_POINTS)
    kept = ordered[::every]
    if kept[-1] != ordered[-1]:
        kept.append(ordered[-1])
    return [[step, value] for step, value in kept]
