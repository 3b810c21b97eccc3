"""What pages of metrics draw."""

from typing import Any

from apps.metrics.models import Induction, Metric

MOST_DRAWN = 3000  # points
COLOURS = 7  # metrics drawn each in its own


def curve(induction: Induction) -> dict[str, Any] | None:
    """Coverage and redundancy of the first round over the number of metrics, on the folds they were chosen by."""
    tried = [one for one in induction.result.get("curve") or () if len(one["sides"]) == 1]
    if len(tried) < 2:
        return None
    best: dict[float, dict[str, Any]] = {}
    for one in tried:  # several numbers of sides may pair up to as many metrics
        metrics = round(one["metrics"], 1)
        if metrics not in best or one["worth"] > best[metrics]["worth"]:
            best[metrics] = one
    names = {"coverage": "coverage", "redundancy": "redundancy", "worth": "worth (harmonic mean)"}
    return {
        "kind": "line",
        "x": {"name": "metrics"},
        "y": {"name": "share", "min": 0, "max": 1},
        "series": [
            {
                "name": title,
                "points": [[metrics, round(one[name], 4)] for metrics, one in sorted(best.items())],
                "dashed": name == "worth",
            }
            for name, title in names.items()
        ],
    }


def map_of(induction: Induction) -> dict[str, Any]:
    """Every point where its words and its steps lie, by metric: the first two principal components."""
    names = dict(Metric.objects.filter(induction=induction).values_list("pk", "name"))
    by: dict[int | None, dict[str, list[float]]] = {}
    rows = induction.aspects.order_by("number").values_list("metric", "feedback", "x", "y")
    for metric, feedback, x, y in rows[:MOST_DRAWN]:
        by.setdefault(metric, {})[feedback] = [x, y]
    ordered = sorted((one for one in by if one is not None), key=lambda one: (-len(by[one]), one))
    series = [(names[metric], by[metric]) for metric in ordered[:COLOURS]]
    rest = [*ordered[COLOURS:], *([None] if None in by else [])]
    if rest:
        title = "in no metric" if rest == [None] else "other metrics"
        series.append((title, {text: at for metric in rest for text, at in by[metric].items()}))
    return {
        "kind": "scatter",
        "x": {"name": ""},
        "y": {"name": ""},
        "series": [
            {"name": name, "points": [{"name": text, "value": at} for text, at in points.items()]}
            for name, points in series
        ],
    }
