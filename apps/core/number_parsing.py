"""Numbers in text of others. `int` raises on thousands of digits, and takes digits of every script."""

from typing import Any

_MAX_DIGITS = 19
_MAX = 2**63 - 1  # of a key of the database, and of an integer of Protocol Buffers; no row has the key 0


def whole_number(value: Any) -> int | None:
    """The 64-bit number that an integer of JSON, or a text of ASCII digits, is; else None."""
    is_digits = isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= _MAX_DIGITS
    number = int(value) if is_digits else value
    return number if type(number) is int and 0 <= number <= _MAX else None


def signed_number(value: Any) -> int | None:
    """The same, with a minus sign if there is one."""
    if isinstance(value, str) and value.startswith("-"):
        number = whole_number(value[1:])
        return None if number is None else -number
    if type(value) is int and value < 0:
        return value if value >= -_MAX - 1 else None
    return whole_number(value)
