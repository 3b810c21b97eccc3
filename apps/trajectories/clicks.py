"""Where on a screenshot an agent acted: coordinates of its call, or the box of the element it named.

Supported arguments of computer-use and browser agents: `coordinate: [x, y]` or `x` and `y` (computer use), these as an
object, or under other names (`coordinate_x`, `start_x`, `click_x`, `mouse_position`), `mouse_click(x, y)` (BrowserGym),
`pyautogui.click(x, y)` in code, numbers of at most 1 as shares of the image; a `bbox` of (x, y, width, height), or a
`bid` whose box the observation holds.
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
_POINTS = (
    *("coordinate", "coordinates", "position", "point", "start_coordinate", "start_point", "touch_point"),
    *("mouse_position", "click_point", "path", "start_box"),
)
_AXES = (
    *(("x", "y"), ("coordinate_x", "coordinate_y"), ("click_x", "click_y"), ("start_x", "start_y")),
    ("width", "height"),  # of ScreenAgent's positions only
)
_BOXES = ("bbox", "bounding_box", "box")


@dataclass(frozen=True, slots=True)
class ClickMark:
    """In pixels of the image. width, height: of an element; 0 for a point."""

    x: float
    y: float
    width: float = 0.0
    height: float = 0.0


def click_marks(
    calls: Iterable[ToolCall], observations: Iterable[ObservationResult], size: tuple[int, int]
) -> list[ClickMark]:
    """Where `calls` act on an image of that size. Marks outside the image are dropped.

    observations: of the step with the image.
    """
    boxes: dict[str, Any] = {}
    for result in observations:
        if isinstance(result.extra.get("boxes"), dict):
            boxes |= result.extra["boxes"]
    found = [mark for call in calls if (mark := _mark(call, boxes, size)) is not None]
    return [
        mark
        for mark in found
        if mark.x >= 0 and mark.y >= 0 and mark.x + mark.width <= size[0] and mark.y + mark.height <= size[1]
    ]


def _mark(call: ToolCall, boxes: dict[str, Any], size: tuple[int, int]) -> ClickMark | None:
    arguments = call.arguments
    if isinstance(arguments, str):
        if (match := _PAIR.match(arguments)) and _POINTER.search(call.name):
            return _point(float(match[1]), float(match[2]), size)
        bid = _BID.match(arguments)
        return _box(boxes.get(bid[1])) if bid else None
    if isinstance(arguments.get("action"), dict):  # of OpenAI's tool for computers
        arguments = arguments["action"] | arguments
    if box := next((_box(arguments[key]) for key in _BOXES if key in arguments), None):
        return box
    pairs = (_pair(arguments.get(key)) for key in _POINTS)
    if pair := next(filter(None, pairs), None) or _axes(arguments, _AXES[:-1]):
        return _point(*pair, size)
    if isinstance(arguments.get("code"), str) and (match := _CODE.search(arguments["code"])):
        return _point(float(match[1]), float(match[2]), size)
    return _box(boxes.get(arguments["bid"])) if isinstance(arguments.get("bid"), str) else None


def _pair(value: Any) -> tuple[float, float] | None:
    """(x, y) of a list, of an object, or of the first of a path's points."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        value = value[0]
    if isinstance(value, dict):
        return _axes(value, _AXES)
    is_pair = isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))
    return (value[0], value[1]) if is_pair else None


def _axes(holder: dict[str, Any], names: tuple[tuple[str, str], ...]) -> tuple[float, float] | None:
    """names: of x and y, each pair of them."""
    for x, y in names:
        if _is_number(holder.get(x)) and _is_number(holder.get(y)):
            return holder[x], holder[y]
    return None


def _point(x: float, y: float, size: tuple[int, int]) -> ClickMark:
    is_share = 0 <= x <= 1 and 0 <= y <= 1 and isinstance(x, float) and isinstance(y, float)
    return ClickMark(x * size[0], y * size[1]) if is_share else ClickMark(x, y)


def _box(value: Any) -> ClickMark | None:
    if isinstance(value, list) and len(value) == 4 and all(map(_is_number, value)) and min(value[2:]) > 0:
        return ClickMark(*map(float, value))
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
