"""A run's events as drawings and as words."""

from collections.abc import Iterable
from typing import Any

MOST_POINTS = 400


def curves(events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Two drawings for charts.js: the losses, and the accuracy on validation."""
    found = _points(events)
    losses = [("training loss", found["training"]), ("validation loss", found["loss"])]
    return {
        "loss": _drawing("loss", losses),
        "accuracy": _drawing("accuracy", [("validation accuracy", found["accuracy"])], bounds=(0, 1)),
    }


def laid_over(runs: Iterable[tuple[str, Iterable[dict[str, Any]]]]) -> dict[str, Any]:
    """The same of several runs by name: loss and accuracy on validation, and the training loss."""
    found = [(name, _points(events)) for name, events in runs]
    return {
        "validation": _drawing("loss", [(name, one["loss"]) for name, one in found]),
        "accuracy": _drawing("accuracy", [(name, one["accuracy"]) for name, one in found], bounds=(0, 1)),
        "training": _drawing("loss", [(name, one["training"]) for name, one in found]),
    }


def _points(events: Iterable[dict[str, Any]]) -> dict[str, dict[int, float]]:
    """By step; a step's last line counts."""
    found: dict[str, dict[int, float]] = {"training": {}, "loss": {}, "accuracy": {}}
    for event in events:
        step = event.get("step")
        if step is None:
            continue
        if event.get("loss") is not None:
            found["training"][step] = event["loss"]
        for name in ("loss", "accuracy"):
            value = (event.get("validation") or {}).get(name)
            if value is not None:
                found[name][step] = value
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
