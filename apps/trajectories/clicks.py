"""Where on a screenshot an agent acted: coordinates of its call, or the box of the element it named.

Read are what agents that use computers and browsers call by: `coordinate: [x, y]` or `x` and `y` (computer use),
`mouse_click(x, y)` (BrowserGym), `pyautogui.click(x, y)`, numbers of at most 1 as shares of the picture; a `bbox` of
(x, y, width, height), or a `bid` whose box the observation holds.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from workers.schema import ObservationResult, ToolCall
from workers.schema.patterns import TextPattern

_NUMBER = r"(-?\d{1,6}(?:\.\d{1,9})?)"
_PAIR = TextPattern(rf"\s*(?:x\s*=\s*)?{_NUMBER}\s*,\s*(?:y\s*=\s*)?{_NUMBER}\s*(?:,|$)")
_CODE = TextPattern(
    rf"\bpyautogui\.(?:\w*[cC]lick|moveTo|dragTo)\(\s*(?:x\s*=\s*)?{_NUMBER}\s*,\s*(?:y\s*=\s*)?{_NUMBER}"
)
_POINTER = TextPattern(r"(?i)click|tap|mouse|hover|drag|move")
_BID = TextPattern(r"""\s*(?:bid\s*=\s*)?["']([A-Za-z0-9]{1,20})["']""")
_POINTS = ("coordinate", "coordinates", "position", "point", "start_coordinate")
_BOXES = ("bbox", "bounding_box", "box")


@dataclass(frozen=True, slots=True)
class Mark:
    """In pixels of the picture. width, height: of an element; 0 of a point."""

    x: float
    y: float
    width: float = 0.0
    height: float = 0.0


def marks_of(
    calls: Iterable[ToolCall], seen: Iterable[ObservationResult], size: tuple[int, int]
) -> list[Mark]:
    """Where `calls` act on a picture of that size; seen: what was observed with it. What lies outside is left out."""
    boxes: dict[str, Any] = {}
    for result in seen:
        if isinstance(result.extra.get("boxes"), dict):
            boxes |= result.extra["boxes"]
    found = [mark for call in calls if (mark := _mark(call, boxes, size)) is not None]
    return [
        one
        for one in found
        if one.x >= 0 and one.y >= 0 and one.x + one.width <= size[0] and one.y + one.height <= size[1]
    ]


def _mark(call: ToolCall, boxes: dict[str, Any], size: tuple[int, int]) -> Mark | None:
    given = call.arguments
    if isinstance(given, str):
        if (pair := _PAIR.match(given)) and _POINTER.search(call.name):
            return _point(float(pair[1]), float(pair[2]), size)
        bid = _BID.match(given)
        return _box(boxes.get(bid[1])) if bid else None
    if box := next((_box(given[key]) for key in _BOXES if key in given), None):
        return box
    for key in _POINTS:
        if isinstance(given.get(key), list) and len(given[key]) == 2 and all(map(_is_number, given[key])):
            return _point(given[key][0], given[key][1], size)
    if _is_number(given.get("x")) and _is_number(given.get("y")):
        return _point(given["x"], given["y"], size)
    if isinstance(given.get("code"), str) and (pair := _CODE.search(given["code"])):
        return _point(float(pair[1]), float(pair[2]), size)
    return _box(boxes.get(given["bid"])) if isinstance(given.get("bid"), str) else None


def _point(x: float, y: float, size: tuple[int, int]) -> Mark:
    is_share = 0 <= x <= 1 and 0 <= y <= 1 and isinstance(x, float) and isinstance(y, float)
    return Mark(x * size[0], y * size[1]) if is_share else Mark(x, y)


def _box(value: Any) -> Mark | None:
    if isinstance(value, list) and len(value) == 4 and all(map(_is_number, value)) and min(value[2:]) > 0:
        return Mark(*map(float, value))
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
