"""A run's events as drawings and as words."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

MOST_POINTS = 400
ALL = "on validation"


def curves(events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Two drawings for charts.js: the losses, and the accuracy on validation."""
    found = _points(events)
    losses = [("training loss", found.training), ("validation loss", found.validation)]
    return {
        "loss": _drawing("loss", losses),
        "accuracy": _drawing("accuracy", list(found.accuracy.items()), bounds=(0, 1)),
    }


def laid_over(runs: Iterable[tuple[str, Iterable[dict[str, Any]]]]) -> dict[str, Any]:
    """The same of several runs by name: loss and accuracy on validation, and the training loss."""
    found = [(name, _points(events)) for name, events in runs]
    accuracies = [
        (name if what == ALL else f"{name}, {what}", points)
        for name, one in found
        for what, points in one.accuracy.items()
    ]
    return {
        "validation": _drawing("loss", [(name, one.validation) for name, one in found]),
        "accuracy": _drawing("accuracy", accuracies, bounds=(0, 1)),
        "training": _drawing("loss", [(name, one.training) for name, one in found]),
    }


@dataclass
class _Points:
    """By step; a step's last line counts. accuracy: by the objective it is of, ALL where there is one only."""

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


def in_words(drawing: dict[str, Any]) -> str:
    """What a drawing shows, for those who do not see it."""
    said = []
    for series in drawing["series"]:
        first, last = series["points"][0][1], series["points"][-1][1]
        said.append(f"{series['name']} from {first:.3f} to {last:.3f}")
    return "; ".join(said) or "nothing measured yet"


def _drawing(
    name: str, series: list[tuple[str, dict[int, float]]], *, bounds: tuple[float, float] | None = None
) -> dict[str, Any]:
    return {
        "kind": "line",
        "x": {"name": "step"},
        "y": {"name": name} | ({"min": bounds[0], "max": bounds[1]} if bounds else {}),
        "series": [{"name": each, "points": _thinned(points)} for each, points in series if points],
    }


def _thinned(points: dict[int, float]) -> list[list[float]]:
    """At most MOST_POINTS of them, evenly, the last one always."""
    ordered = sorted(points.items())
    every = -(-len(ordered) // MOST_POINTS)
    kept = ordered[::every]
    if kept[-1] != ordered[-1]:
        kept.append(ordered[-1])
    return [[step, value] for step, value in kept]
