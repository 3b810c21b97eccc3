"""Numbers in text of others. `int` raises on thousands of digits, and takes digits of every script."""

from typing import Any

_MAX_DIGITS = 19  # of a 64-bit integer


def whole_number(value: Any) -> int | None:
    """The number that an integer, or a text of up to 19 ASCII digits, is; else None."""
    if type(value) is int:
        return value if value >= 0 else None
    is_number = isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= _MAX_DIGITS
    return int(value) if is_number else None


def signed_number(value: Any) -> int | None:
    """The same, with a minus sign if there is one."""
    if isinstance(value, str) and value.startswith("-"):
        number = whole_number(value[1:])
        return None if number is None else -number
    return value if type(value) is int else whole_number(value)
