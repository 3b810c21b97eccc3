"""The events of a training run as charts and as words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

MAX_POINTS = 400
VALIDATION_LOSS, TRAINING_LOSS, ACCURACY = "validation loss", "training loss", "validation accuracy"
_SKIPPED = {"step", "progress", "message", "validation"}
_NAMES = {"loss": TRAINING_LOSS, "pairs_per_second": "comparisons per second"}  # of keys of an event
_Points = dict[int, float]  # by training step


@dataclass(frozen=True, slots=True)
class RunCurves:
    """metrics: by name. style: as `apps.core.charts` has it, the same for a run wherever it is drawn."""

    name: str
    style: int
    metrics: dict[str, _Points]


def read_metrics(events: Iterable[dict[str, Any]]) -> dict[str, _Points]:
    """Every number that was logged, by name; the last line of a step counts."""
    found: dict[str, _Points] = {}
    for event in events:
        step = event.get("step")
        if step is None:
            continue
        logged = {
            _NAMES.get(key, key.replace("_", " ")): value
            for key, value in event.items()
            if key not in _SKIPPED
        }
        logged |= {f"validation {name}": value for name, value in (event.get("validation") or {}).items()}
        for name, value in logged.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                found.setdefault(name, {})[step] = value
    return found


def curves(events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Two charts: the losses, and the validation accuracies."""
    metrics = read_metrics(events)
    losses = [(name, metrics[name]) for name in (TRAINING_LOSS, VALIDATION_LOSS) if name in metrics]
    accuracies = [(_without_split(name), metrics[name]) for name in metrics if _is_accuracy(name)]
    return {
        "loss": _line_chart("loss", [_series(name, points) for name, points in losses]),
        "accuracy": _line_chart(
            "accuracy", [_series(name, points) for name, points in accuracies], is_share=True
        ),
    }


def metric_names(runs: Sequence[RunCurves]) -> list[str]:
    """Of any run: the usual ones first."""
    names = dict.fromkeys(name for run in runs for name in run.metrics)
    first = [name for name in names if _is_accuracy(name)]
    first += [name for name in (VALIDATION_LOSS, TRAINING_LOSS) if name in names]
    return list(dict.fromkeys([*first, *sorted(names)]))


def overlaid_chart(runs: Sequence[RunCurves], metric: str) -> dict[str, Any]:
    """One metric of several runs."""
    series = [
        _series(run.name, run.metrics[metric]) | {"style": run.style} for run in runs if metric in run.metrics
    ]
    return _line_chart(metric, series, is_share=_is_accuracy(metric))


def messages(events: Iterable[dict[str, Any]]) -> list[str]:
    return [str(event["message"]) for event in events if event.get("message")]


def chart_in_words(chart: dict[str, Any]) -> str:
    """For screen readers."""
    sentences = []
    for series in chart["series"]:
        first, last = series["points"][0][1], series["points"][-1][1]
        sentences.append(f"{series['name']} from {first:.3f} to {last:.3f}")
    return f"{chart['y']['name']} by training step: {'; '.join(sentences) or 'no data yet'}".capitalize()


def _is_accuracy(name: str) -> bool:
    return name.startswith("validation ") and name.endswith("accuracy")


def _without_split(name: str) -> str:
    """The objective, where there are several; else that it is the validation split."""
    return name.removeprefix("validation ").removesuffix("accuracy").strip() or "validation"


def _series(name: str, points: _Points) -> dict[str, Any]:
    return {"name": name, "points": _downsampled(points)}


def _line_chart(name: str, series: list[dict[str, Any]], *, is_share: bool = False) -> dict[str, Any]:
    return {
        "kind": "line",
        "x": {"name": "training step"},
        "y": {"name": name} | ({"share": True, "min": 0, "max": 1} if is_share else {}),
        "zoom": True,
        "smooth": True,
        "series": series,
    }


def _downsampled(points: _Points) -> list[list[float]]:
    """At most MAX_POINTS of them, evenly spaced, always with the last one."""
    ordered = sorted(points.items())
    every = -(-len(ordered) // MAX_POINTS)
    kept = ordered[::every]
    if kept[-1] != ordered[-1]:
        kept.append(ordered[-1])
    return [[step, value] for step, value in kept]
