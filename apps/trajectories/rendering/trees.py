"""JSON as a tree that folds; short JSON as text. Numbers and the order of keys stay as they were written."""

import json
from collections.abc import Iterator
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from apps.trajectories.rendering.code import code_html
from apps.trajectories.rendering.safe import MOST, escape, may_colour

_FLAT = 12  # lines up to which JSON is no tree
_OPEN = 2  # levels of a tree that are open
_DEEPEST = 24  # levels; what is deeper stands as text
_FEW = 6  # numbers that stand on one line: a place, a size, a colour
_ENTRIES = 500  # of one object or array that are shown


class Number(str):
    """As it was written."""

    __slots__ = ()


def parsed(text: str) -> dict[str, Any] | list[Any] | None:
    """The object or array a text is; None where it is none, is empty, or is very long."""
    stripped = text.strip()
    if stripped[:1] not in ("{", "[") or stripped[-1:] not in ("}", "]") or len(stripped) > MOST:
        return None
    try:
        value = json.loads(stripped, parse_float=Number, parse_int=Number)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) and value else None


def json_html(value: dict[str, Any] | list[Any]) -> SafeString:
    """value: of `parsed` or of json.loads."""
    flat = pretty(value)
    if flat.count("\n") < _FLAT or not may_colour(flat):
        return code_html(flat, "json")
    return format_html('<div class="tree">{}</div>', mark_safe("".join(_entries(value, 0))))  # noqa: S308


def pretty(value: Any, depth: int = 0) -> str:
    """JSON with an entry a line; what is deeper than a tree goes is on one line, and a few numbers are."""
    pairs = _pairs(value)
    if not pairs or depth >= _DEEPEST:
        return _flat(value)
    if (
        len(pairs) <= _FEW
        and all(isinstance(pair, Number | int | float) for _, pair in pairs)
        and isinstance(value, list)
    ):
        return f"[{', '.join(_flat(element) for element in value)}]"
    inner, outer = "  " * (depth + 1), "  " * depth
    keys = isinstance(value, dict)
    lines = [
        f"{inner}{_quoted(key) + ': ' if keys else ''}{pretty(entry, depth + 1)}" for key, entry in pairs
    ]
    opening, closing = "{}" if keys else "[]"
    return "\n".join([opening, *(f"{line}," for line in lines[:-1]), lines[-1], f"{outer}{closing}"])


def _pairs(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []


def _flat(value: Any) -> str:
    if isinstance(value, Number):
        return value
    try:
        return _quoted(value)
    except (RecursionError, ValueError):
        return "…"


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _entries(value: Any, depth: int) -> Iterator[str]:
    pairs = _pairs(value)
    for key, entry in pairs[:_ENTRIES]:
        name = format_html(
            '<span class="{}">{}</span>', "nt" if isinstance(key, str) else "tree-place", escape(str(key))
        )
        inner = _pairs(entry)
        if not inner or depth >= _DEEPEST:
            yield format_html('<div class="tree-leaf">{}: {}</div>', name, _leaf(entry))
            continue
        size = format_html(
            '<span class="tree-size">{}</span>', ("{%d}" if isinstance(entry, dict) else "[%d]") % len(inner)
        )
        opened = mark_safe(" open") if depth + 1 < _OPEN else ""
        yield format_html(
            "<details{}><summary>{}: {}</summary>{}</details>",
            opened,
            name,
            size,
            mark_safe("".join(_entries(entry, depth + 1))),  # noqa: S308  (each was escaped)
        )
    if len(pairs) > _ENTRIES:
        yield format_html('<div class="tree-leaf tree-size">and {} more</div>', len(pairs) - _ENTRIES)


def _leaf(value: Any) -> SafeString:
    if isinstance(value, str) and not isinstance(value, Number):
        return format_html('<span class="s2">{}</span>', escape(value))  # its lines as lines
    return format_html('<span class="mi">{}</span>', escape(_flat(value)))
