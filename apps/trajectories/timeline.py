"""The steps of a trajectory, or the spans of its trace, over time: a waterfall."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from apps.trajectories import exports
from apps.trajectories.models import Step, Trajectory
from apps.trajectories.step_times import span_time, step_span
from apps.trajectories.step_usage import StepUsage, format_duration, stated_usage

WIDTH = 1000  # of the drawing of a bar
_MIN_WIDTH = 4
_SPAN_FORMAT = "otel"  # whose documents hold the spans of the trace
_MAX_DEPTH = 12


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """index: of the step; None for a span that is no step. start: seconds after the first. seconds: how long it took;
    None where that is not stated. x, width: of its bar."""

    index: int | None
    name: str
    source: str
    start: float
    seconds: float | None
    usage: StepUsage
    depth: int = 0
    x: int = 0
    width: int = 0

    @property
    def start_text(self) -> str:
        return f"+{format_duration(self.start)}"

    @property
    def seconds_text(self) -> str:
        return "" if self.seconds is None else format_duration(self.seconds)

    @property
    def indent(self) -> str:
        return "\u2003" * min(self.depth, _MAX_DEPTH)


@dataclass(frozen=True, slots=True)
class Timeline:
    """count: of all rows, of which `rows` are those from `first`. untimed: steps without a time. has_spans: rows are
    the spans of the trace."""

    rows: list[TimelineRow]
    first: int
    count: int
    began: datetime
    seconds: float
    untimed: int
    has_spans: bool

    @property
    def seconds_text(self) -> str:
        return format_duration(self.seconds)


def trajectory_timeline(trajectory: Trajectory, first: int, most: int) -> Timeline | None:
    """None where no step has a time. first, most: of the rows."""
    spans = list(_span_rows(trajectory)) if trajectory.source_format == _SPAN_FORMAT else []
    timed = spans or list(_step_rows(trajectory))
    if not timed:
        return None
    began = min(row.start for row in timed)
    ended = max(row.start + (row.seconds or 0.0) for row in timed)
    seconds = ended - began
    return Timeline(
        rows=[_placed(row, began, seconds) for row in timed[first : first + most]],
        first=first,
        count=len(timed),
        began=datetime.fromtimestamp(began, tz=UTC),
        seconds=seconds,
        untimed=0 if spans else trajectory.step_count - len(timed),
        has_spans=bool(spans),
    )


def _placed(row: TimelineRow, began: float, seconds: float) -> TimelineRow:
    start = row.start - began
    x = round(WIDTH * start / seconds) if seconds else 0
    width = max(_MIN_WIDTH, round(WIDTH * (row.seconds or 0.0) / seconds) if seconds else WIDTH)
    x = min(x, WIDTH - _MIN_WIDTH)
    return TimelineRow(
        row.index, row.name, row.source, start, row.seconds, row.usage, row.depth, x, min(width, WIDTH - x)
    )


def _step_rows(trajectory: Trajectory) -> Iterator[TimelineRow]:
    """Steps that have a time. Seconds since 1970."""
    rows = Step.objects.filter(trajectory=trajectory).order_by("index")
    for row in rows.only("index", "source", "speaker", "tool_calls", "metrics", "extra", "trajectory"):
        if (span := step_span(row.extra)) is None:
            continue
        start, end = span
        usage = stated_usage(row.metrics)
        seconds = end - start if end is not None and end > start else usage.seconds
        names = ", ".join(
            call["name"] for call in row.tool_calls if isinstance(call, dict) and "name" in call
        )
        stated = row.extra.get("span")
        name = names or (stated.get("name") if isinstance(stated, dict) else "") or row.speaker or row.source
        yield TimelineRow(row.index, str(name), row.source, start, seconds, usage)


def _span_rows(trajectory: Trajectory) -> Iterator[TimelineRow]:
    """The spans of the original trace, each below the one that started it."""
    try:
        document = json.loads(exports.original_document(trajectory.pk))
    except (ValueError, RecursionError):
        return
    found = document.get("spans") if isinstance(document, dict) else None
    spans = [
        span for span in found or () if isinstance(span, dict) and span_time(span.get("start")) is not None
    ]
    indices = _step_indices(trajectory)
    children: dict[str, list[Mapping[str, Any]]] = {}
    known = {span.get("id") for span in spans}
    for span in sorted(spans, key=lambda span: span["start"]):
        parent = str(span.get("parent"))
        children.setdefault(parent if parent in known else "", []).append(span)
    waiting = [(span, 0) for span in reversed(children.get("", ()))]
    while waiting:
        span, depth = waiting.pop()
        start, end = span_time(span.get("start")) or 0.0, span_time(span.get("end"))
        index = indices.get(span.get("id", ""))
        yield TimelineRow(
            index=None if index is None else index[0],
            name=str(span.get("name") or "span"),
            source="span" if index is None else "agent",
            start=start,
            seconds=end - start if end is not None and end >= start else None,
            usage=stated_usage(index[1]) if index else StepUsage(),
            depth=depth,
        )
        waiting += [(child, depth + 1) for child in reversed(children.pop(span.get("id", ""), ()))]


def _step_indices(trajectory: Trajectory) -> dict[str, tuple[int, Mapping[str, Any]]]:
    """Index and metrics of the step that each span is."""
    rows = Step.objects.filter(trajectory=trajectory, source="agent").order_by("index")
    found = {}
    for index, extra, metrics in rows.values_list("index", "extra", "metrics"):
        span = extra.get("span")
        if isinstance(span, dict) and isinstance(span.get("id"), str):
            found[span["id"]] = (index, metrics)
    return found
