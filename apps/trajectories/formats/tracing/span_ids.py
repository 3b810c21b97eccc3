"""Ids and times of spans as exporters write them."""

import base64
import binascii
from typing import Any

from apps.trajectories.formats.tracing.otel_spans import nanoseconds
from workers.schema.patterns import TextPattern

_HEXADECIMAL = TextPattern(r"(0x)?[0-9a-fA-F-]{8,40}")
_BYTES = {8: 16, 16: 32}  # of an id, and its hexadecimal digits


def hexadecimal_id(value: str) -> str:
    """An id in hexadecimal: console exporters write 0x before it, and MLflow writes its bytes in base64."""
    if _HEXADECIMAL.fullmatch(value):
        return value.removeprefix("0x")
    try:
        raw = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return value[:64]
    return raw.hex() if len(raw) in _BYTES else value[:64]


def span_time(value: Any) -> int:
    """Node writes [seconds, nanoseconds], others nanoseconds, seconds, milliseconds, or a date and time."""
    if isinstance(value, list) and len(value) == 2 and all(isinstance(each, int) for each in value):
        return int(value[0]) * 10**9 + int(value[1])
    if isinstance(value, int | float) and not isinstance(value, bool) and 10**11 <= value < 10**14:
        return int(value * 10**6)
    return nanoseconds(value or 0)
