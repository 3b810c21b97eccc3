"""From bytes to checked values: every error says where, by a JSON pointer."""

import json
import math
import re
from typing import Any, TypeVar

import msgspec

from workers.errors import InvalidRecord
from workers.schema.patterns import TextPattern
from workers.schema.shape import RECORD_LIMITS, ShapeLimits, check_json_shape

T = TypeVar("T")
_encode = msgspec.json.Encoder().encode
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_PATH = TextPattern(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


def parse_json(
    data: bytes | str, *, pointer: str = "", limits: ShapeLimits = RECORD_LIMITS, repeats: bool = True
) -> Any:
    """Decode one JSON document. NaN and Infinity are refused; lone surrogates and NUL are let through (see `clean`).

    limits: held to before anything is built. repeats: whether an object may have a key twice, the last one counts.
    """
    check_json_shape(data, limits, pointer=pointer)

    def refuse(constant: str) -> float:
        raise InvalidRecord(
            f"{constant} is not a JSON number; leave the field out where there is no value.", pointer=pointer
        )

    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        hook = None if repeats else _without_repeats
        return json.loads(text, parse_constant=refuse, object_pairs_hook=hook)
    except UnicodeDecodeError as error:
        raise InvalidRecord(
            f"not UTF-8 at byte {error.start}; save the file as UTF-8.", pointer=pointer
        ) from None
    except json.JSONDecodeError as error:
        raise InvalidRecord(
            f"not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}.", pointer=pointer
        ) from None
    except RecursionError:
        raise InvalidRecord("nested too deeply to be read.", pointer=pointer) from None
    except ValueError:  # of Python's limit for whole numbers
        raise InvalidRecord(
            "not readable: it has a whole number of thousands of digits.", pointer=pointer
        ) from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two readers of an object with a key twice may each believe another value, so it is refused."""
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise InvalidRecord(f"not clear: an object has the key {twice[:100]!r} twice; send it once.")
    return found


def clean(value: Any) -> tuple[Any, int]:
    """Replace what neither PostgreSQL nor a tokenizer can hold (NUL, lone surrogates) by U+FFFD; also how many were."""
    return (value, 0) if is_clean(value) else _clean(value)


def is_clean(value: Any) -> bool:
    """False where `clean` may find something to replace."""
    try:
        # Almost nothing has any: encoding to UTF-8 finds that out many times faster than looking at each string.
        return b"\\u0000" not in _encode(value)
    except (UnicodeEncodeError, TypeError):  # a surrogate, or what is not from JSON
        return False


def _clean(value: Any) -> tuple[Any, int]:
    if isinstance(value, str):
        return _UNSTORABLE.subn("\ufffd", value) if _UNSTORABLE.search(value) else (value, 0)
    if isinstance(value, dict):
        pairs = [(_clean(key), _clean(item)) for key, item in value.items()]
        return {key: item for (key, _), (item, _) in pairs}, sum(n + m for (_, n), (_, m) in pairs)
    if isinstance(value, list):
        items = [_clean(item) for item in value]
        return [item for item, _ in items], sum(n for _, n in items)
    return value, 0


def convert(value: Any, type_: type[T], *, pointer: str = "") -> T:
    """`value` (decoded JSON) as a `type_`. Raises InvalidRecord with the pointer of what does not fit."""
    try:
        return msgspec.convert(value, type_, str_keys=True)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `")
        raise InvalidRecord(f"{message}.", pointer=pointer + _pointer(path.rstrip("`"))) from None


def _pointer(path: str) -> str:
    """msgspec's `$.a[0].b` as the JSON pointer `/a/0/b`."""
    return "".join(f"/{escape(name or index)}" for name, index in _PATH.findall(path.removeprefix("$")))


def escape(token: str) -> str:
    return token.replace("~", "~0").replace("/", "~1")


def require_object(value: Any, *, pointer: str = "") -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidRecord(f"expected a JSON object, got {json_type_name(value)}.", pointer=pointer)
    return value


def require_list(value: Any, *, pointer: str = "") -> list[Any]:
    if not isinstance(value, list):
        raise InvalidRecord(f"expected a JSON array, got {json_type_name(value)}.", pointer=pointer)
    return value


def optional_str(value: Any, *, pointer: str = "") -> str | None:
    if value is not None and not isinstance(value, str):
        raise InvalidRecord(f"expected a string, got {json_type_name(value)}.", pointer=pointer)
    return value


def finite(value: Any, *, pointer: str = "") -> float | None:
    """A finite number or None. NaN and infinities are refused: a reward that is not a number trains nothing."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidRecord(f"expected a number, got {json_type_name(value)}.", pointer=pointer)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidRecord(
            f"{value} is not a finite number; leave the field out where there is no value.", pointer=pointer
        )
    return number


def json_type_name(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
