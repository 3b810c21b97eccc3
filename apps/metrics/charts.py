"""Charts of an induction, for charts.js."""

from typing import Any

from apps.metrics.models import Induction, Metric

MOST_POINTS = 3000
COLOURS = 7  # metrics with a colour each


def metric_count_chart(induction: Induction) -> dict[str, Any] | None:
    """Coverage and redundancy of the first round by the number of metrics, on the folds they were chosen by."""
    tried = [entry for entry in induction.result.get("curve") or () if len(entry["sides"]) == 1]
    if len(tried) < 2:
        return None
    best: dict[float, dict[str, Any]] = {}
    for entry in tried:  # several numbers of sides can give the same number of metrics
        count = round(entry["metrics"], 1)
        if count not in best or entry["worth"] > best[count]["worth"]:
            best[count] = entry
    titles = {"coverage": "coverage", "redundancy": "redundancy", "worth": "harmonic mean"}
    return {
        "kind": "line",
        "x": {"name": "number of metrics"},
        "y": {"name": "share", "share": True, "min": 0, "max": 1},
        "series": [
            {
                "name": title,
                "points": [[count, round(entry[name], 4)] for count, entry in sorted(best.items())],
                "dashed": name == "worth",
            }
            for name, title in titles.items()
        ],
    }


def comment_map(induction: Induction) -> dict[str, Any]:
    """Every point by metric, on the first two principal components of its text and its steps."""
    names = dict(Metric.objects.filter(induction=induction).values_list("pk", "name"))
    points_by_metric: dict[int | None, dict[str, list[float]]] = {}
    rows = induction.aspects.order_by("number").values_list("metric", "feedback", "x", "y")
    for metric, feedback, x, y in rows[:MOST_POINTS]:
        points_by_metric.setdefault(metric, {})[feedback] = [x, y]
    ordered = sorted(
        (metric for metric in points_by_metric if metric is not None),
        key=lambda metric: (-len(points_by_metric[metric]), metric),
    )
    series = [(names[metric], points_by_metric[metric]) for metric in ordered[:COLOURS]]
    rest = [*ordered[COLOURS:], *([None] if None in points_by_metric else [])]
    if rest:
        title = "no metric" if rest == [None] else "other metrics"
        other = {text: position for metric in rest for text, position in points_by_metric[metric].items()}
        series.append((title, other))
    return {
        "kind": "scatter",
        "x": {"name": "first component"},
        "y": {"name": "second component"},
        "zoom": True,
        "n": f"n = {sum(map(len, points_by_metric.values())):,} points of comments",
        "series": [
            {"name": name, "points": [{"name": text, "value": position} for text, position in points.items()]}
            for name, points in series
        ],
    }
