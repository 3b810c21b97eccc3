"""When a step happened, as its trace states it: a span, or a time within what the importer kept of it."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

_KEYS = ("timestamp", "ts", "time", "created_at", "createdAt", "start_time", "started_at")
_DEEPEST = 4  # levels within which a time is looked for
_FIRST_YEAR, _LAST_YEAR = 2000, 2100  # smaller or larger numbers are no times
_UNITS = (1, 1e3, 1e6, 1e9)  # of numbers since 1970: seconds, milliseconds, microseconds, nanoseconds


def step_span(extra: Mapping[str, Any]) -> tuple[float, float | None] | None:
    """Start and end of a step, seconds since 1970; no end where none is stated."""
    span = extra.get("span")
    if isinstance(span, dict) and (start := span_time(span.get("start"))) is not None:
        return start, span_time(span.get("end"))
    start = next((time for value in _stated_times(extra, 0) if (time := parse_time(value)) is not None), None)
    return None if start is None else (start, None)


def span_time(value: Any) -> float | None:
    """Of a span, whose times are nanoseconds since 1970."""
    return value / 1e9 if isinstance(value, int) and not isinstance(value, bool) else None


def parse_time(value: Any) -> float | None:
    """Seconds since 1970 of a number in any unit or of ISO 8601; without a time zone it is taken for UTC."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _plausible(value)
    if not isinstance(value, str) or not 10 <= len(value) <= 40:
        return None
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _plausible(number: float) -> float | None:
    low, high = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (_FIRST_YEAR, _LAST_YEAR))
    return next((number / unit for unit in _UNITS if low <= number / unit < high), None)


def _stated_times(value: Any, depth: int) -> Iterator[Any]:
    """Those of an object before those within it; of an array, of its first entry."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        yield from _stated_times(value[0], depth + 1) if value else ()
    elif isinstance(value, dict):
        yield from (value[key] for key in _KEYS if key in value)
        for inner in value.values():
            if isinstance(inner, dict | list):
                yield from _stated_times(inner, depth + 1)
