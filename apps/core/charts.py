"""Charts as pages describe them: plain dictionaries, drawn by static/js/charts.js, and the same numbers as a table.

{"kind": "line" | "bar" | "scatter",
 "x": {"name", "unit"?, "labels"? (categories), "type": "time"? (points in ms since 1970), "min"?, "max"?},
 "y": {"name", "unit"?, "share"? (0 to 1, shown in percent), "count"? (whole numbers), "min"?, "max"?},
 "series": [{"name", "points": [[x, y], ...] or [y, ...] by label; y may be None: a gap,
             "intervals": [[x, low, high], ...]?, "band": the same, drawn as an area?, "counts": [n, ...]? by point,
             "style": int? (colour and dash: the same number looks the same on every page), "dashed"?, "kind"?}],
 "n": str? (what was counted), "zoom": bool?, "smooth": bool? (a smoothing control, for curves)}
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from statistics import median
from typing import Any

from django.utils import timezone

from apps.core.number_format import decimal, percent

COLOURS = 8  # --ts-c1 to --ts-c8
MAX_TABLE_ROWS = 500
_GAP = 3  # times the usual distance of two readings


@dataclass(frozen=True, slots=True)
class ChartTable:
    """hidden: rows that are not listed."""

    columns: list[str]
    rows: list[list[str]]
    hidden: int


def palette_colour(style: int) -> int:
    """1 to COLOURS, of the palette."""
    return style % COLOURS + 1


def break_gaps(points: Iterable[tuple[datetime, float]]) -> list[list[float | None]]:
    """Readings in order of time, with a gap where one or more are missing: a line there would be invented."""
    known = [(at.timestamp() * 1000, value) for at, value in points]
    distances = [after[0] - before[0] for before, after in pairwise(known)]
    longest = _GAP * median(distances) if len(distances) > 2 else float("inf")
    broken: list[list[float | None]] = []
    for place, (at, value) in enumerate(known):
        if place and distances[place - 1] > longest:
            broken.append([(at + known[place - 1][0]) / 2, None])
        broken.append([at, value])
    return broken


def chart_table(chart: dict[str, Any]) -> ChartTable:
    """A row for each x with a column for each series; of points, a row for each point."""
    y = chart["y"]
    x_name = _axis_title(chart["x"]) or "x"
    if chart["kind"] == "scatter":
        columns = ["series", x_name, _axis_title(y) or "y"]
        rows = [
            [_point_name(series["name"], point), _x_text(chart, x), _y_text(y, value)]
            for series in chart["series"]
            for point, (x, value) in _scattered(series["points"])
        ]
    else:
        columns = [x_name, *(series["name"] for series in chart["series"])]
        found = [_cells(chart, series) for series in chart["series"]]
        places = dict.fromkeys(x for cells in found for x in cells)
        ordered = list(places) if chart["x"].get("labels") else sorted(places)
        rows = [[_x_text(chart, x), *(cells.get(x, "") for cells in found)] for x in ordered]
    return ChartTable(columns, rows[:MAX_TABLE_ROWS], max(0, len(rows) - MAX_TABLE_ROWS))


def _cells(chart: dict[str, Any], series: dict[str, Any]) -> dict[Any, str]:
    """By x: the value with its interval and count. Gaps have none."""
    y = chart["y"]
    spans = {x: (low, high) for x, low, high in series.get("intervals") or series.get("band") or ()}
    counts = series.get("counts") or ()
    cells: dict[Any, str] = {}
    for place, point in enumerate(series["points"]):
        x, value = point if isinstance(point, list | tuple) else (place, point)
        if value is None:
            continue
        text = _y_text(y, value)
        if x in spans:
            text += f" [{', '.join(_y_text(y, end) for end in spans[x])}]"
        if place < len(counts):
            text += f", n {counts[place]:,}"
        cells[x] = text
    return cells


def _scattered(points: Sequence[Any]) -> Iterable[tuple[Any, Sequence[float]]]:
    return ((point, point["value"] if isinstance(point, dict) else point) for point in points)


def _point_name(name: str, point: Any) -> str:
    return f"{name}: {point['name']}" if isinstance(point, dict) and point.get("name") else name


def _axis_title(axis: dict[str, Any]) -> str:
    """The name, with the unit where it has one."""
    unit = "%" if axis.get("share") else axis.get("unit")
    return f"{axis.get('name', '')} ({unit})" if unit else str(axis.get("name", ""))


def _x_text(chart: dict[str, Any], x: Any) -> str:
    axis = chart["x"]
    if (labels := axis.get("labels")) is not None:
        return str(labels[x])
    if axis.get("type") == "time":
        return f"{timezone.localtime(datetime.fromtimestamp(x / 1000, UTC)):%d %b %Y, %H:%M}"
    return _number_text(x)


def _y_text(axis: dict[str, Any], value: float) -> str:
    return percent(value) if axis.get("share") else _number_text(value)


def _number_text(value: float) -> str:
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}".replace("-", "\N{MINUS SIGN}")
    return decimal(value, 3 if abs(value) < 100 else 1)
