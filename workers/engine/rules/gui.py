"""Actions on a screen, read from tool calls and from texts of the known agents, and compared with the right ones."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workers.engine.rules.agent_text import agent_steps, message_of
from workers.engine.rules.answers import normalised
from workers.engine.rules.references import reference_part
from workers.engine.rules.tools import tool_calls
from workers.errors import RewardError
from workers.schema import ScoreInput, Step
from workers.schema.model_score import ModelScore
from workers.schema.patterns import TextPattern
from workers.schema.reference_parts import GuiAction

Box = tuple[float, float, float, float]
_HINT = (
    'the reference is the right action as JSON: {"action": "click", "box": [left, top, right, bottom], "text": "...", '
    '"screen": [width, height]}, with an action, a box or a text, or a list of these, one for each agent step.'
)
_SAME = {
    "left_click": "click", "tap": "click", "single_click": "click", "click_element": "click",
    "input": "type", "input_text": "type", "write": "type", "typewrite": "type", "type_text": "type",
    "left_double": "double_click", "doubleclick": "double_click", "right_single": "right_click",
    "rightclick": "right_click", "swipe": "scroll", "longpress": "long_press", "press": "key", "hotkey": "key",
    "finish": "finished", "done": "finished", "terminate": "finished",
}  # fmt: skip
_PLACES = (
    "box",
    "bbox",
    "bbox_2d",
    "start_box",
    "coordinate",
    "coordinates",
    "point",
    "start_point",
    "position",
)
_TEXTS = ("text", "content", "value", "key", "keys")
_CALL = TextPattern(r"([A-Za-z_]{1,40})\(([^()]*(?:\([^()]*\)[^()]*)?)\)")
_QUOTED = TextPattern(r"(?:content|text|value|message|key)\s*=\s*(?:'([^']*)'|\"([^\"]*)\")")
_ONLY_QUOTED = TextPattern(r"^\s*(?:'([^']*)'|\"([^\"]*)\")")
_NUMBER = TextPattern(r"-?\d{1,9}(?:\.\d{1,9})?")
_GROUP = TextPattern(r"(?:\[|\(|<point>|<box>)([\d\s.,-]{3,200})(?:\]|\)|</point>|</box>)")
_SPAN = 2000  # characters from the end in which a bare place is looked for


@dataclass(frozen=True, slots=True)
class ScreenAction:
    """kind: click, type, ...; None where only a place was given. box: of a point, left is right and top is bottom."""

    kind: str | None
    box: Box | None = None
    text: str | None = None

    @property
    def is_point(self) -> bool:
        return self.box is not None and self.box[:2] == self.box[2:]


def matched(rule: GuiAction, item: ScoreInput, count: Callable[[str], int]) -> ModelScore:
    """The mean over the right actions; a single one is compared with the last agent step. 0 to 1."""
    expected = reference_part(item, "gui", _HINT)
    steps = agent_steps(item)
    one_each = isinstance(expected, list)
    right = expected if one_each else [expected]
    if not right or not all(map(_is_reference, right)):
        raise RewardError(_HINT[0].upper() + _HINT[1:], pointer="/reference")
    start = 0 if one_each else len(steps) - 1
    earned = [0.0] * len(steps)
    for place, reference in enumerate(right, start):
        if place < len(steps):
            earned[place] = compare(rule, screen_action(steps[place]), reference) / len(right)
    return ModelScore.sum_of_steps(earned)


def compare(rule: GuiAction, action: ScreenAction | None, reference: Mapping[str, Any]) -> float:
    """The weighted mean of the terms that the reference has; a box of the agent is rated for its IoU and size too."""
    if action is None:
        return 0.0
    terms: list[tuple[float, float]] = []
    if "action" in reference:
        terms.append((rule.action_weight, float((action.kind or "click") == kind_of(reference["action"]))))
    if "box" in reference:
        theirs = _scaled(_ordered(reference["box"]), rule.reference_coordinates, rule.coordinates, reference)
        if action.box is None:
            terms.append((rule.point_weight, 0.0))
        else:
            mine = _scaled(action.box, rule.coordinates, rule.reference_coordinates, reference)
            terms.append((rule.point_weight, float(_holds_middle(theirs, mine))))
            if not action.is_point:
                terms.append((rule.box_weight, iou(mine, theirs)))
                terms.append((rule.size_weight, _size(mine, theirs)))
    if "text" in reference:
        terms.append(
            (rule.text_weight, float(normalised(action.text or "") == normalised(reference["text"])))
        )
    total = sum(weight for weight, _ in terms)
    return sum(weight * value for weight, value in terms) / total if total else 0.0


def screen_action(step: Step) -> ScreenAction | None:
    """Of the last tool call; else of the last JSON object, call (`click(start_box='(1,2)')`) or place in the text."""
    calls = tool_calls(step)
    if calls:
        return None if calls[-1].arguments is None else _of_arguments(calls[-1].arguments, calls[-1].name)
    text = message_of(step)
    given = _last_object(text)
    if given is not None:
        return _of_arguments(given, None)
    found = _CALL.findall(text)
    if found:
        return _of_call(*found[-1])
    groups = _GROUP.findall(text[-_SPAN:])
    box = _box(_numbers(groups[-1])) if groups else None
    return None if box is None else ScreenAction(None, box)


def kind_of(name: str) -> str:
    name = name.strip().lower().rpartition(".")[2].replace("-", "_").replace(" ", "_")
    return _SAME.get(name, name)


def iou(first: Box, second: Box) -> float:
    """Area in common / area of both together: 0 to 1."""
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    common = max(width, 0.0) * max(height, 0.0)
    union = _area(first) + _area(second) - common
    return min(1.0, common / union) if union > 0 else float(first == second)


def _size(first: Box, second: Box) -> float:
    small, large = sorted((_area(first), _area(second)))
    return small / large if large > 0 else 1.0


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _holds_middle(box: Box, inner: Box) -> bool:
    x, y = (inner[0] + inner[2]) / 2, (inner[1] + inner[3]) / 2
    return box[0] <= x <= box[2] and box[1] <= y <= box[3]


def _scaled(box: Box, own: str, other: str, reference: Mapping[str, Any]) -> Box:
    """As shares of the screen where the two systems differ; else unchanged."""
    if own == other:
        return box
    width, height = 1.0, 1.0
    if own == "thousand":
        width = height = 1000.0
    elif own == "pixels":
        if "screen" not in reference:
            raise RewardError(
                "coordinates of the agent and of the reference differ, and one of them is in pixels; the reference "
                'needs "screen": [width, height].',
                pointer="/reference",
            )
        width, height = reference["screen"]
    return box[0] / width, box[1] / height, box[2] / width, box[3] / height


def _of_arguments(given: Mapping[str, Any], name: str | None) -> ScreenAction | None:
    kind = given.get("action", given.get("action_type", given.get("type", name)))
    if isinstance(kind, Mapping):  # {"action": {"type": "click", ...}}
        return _of_arguments(kind, name)
    box = next((found for key in _PLACES if (found := _box(_numbers(given.get(key)))) is not None), None)
    if box is None:
        box = _box(_numbers([given.get("x"), given.get("y")]))
    texts = [given[key] for key in _TEXTS if isinstance(given.get(key), str)]
    if not isinstance(kind, str):
        return None if box is None else ScreenAction(None, box)
    return ScreenAction(kind_of(kind), box, texts[0] if texts else None)


def _of_call(name: str, inside: str) -> ScreenAction:
    quoted = _QUOTED.search(inside) or (None if "=" in inside else _ONLY_QUOTED.search(inside))
    text = None if quoted is None else quoted[1] or quoted[2] or ""
    box = None if quoted is not None else _box([float(number) for number in _NUMBER.findall(inside)])
    return ScreenAction(kind_of(name), box, text)


def _last_object(text: str) -> Mapping[str, Any] | None:
    """The JSON object between the last pair of outer braces."""
    start, end = text.find("{"), text.rfind("}")
    if not 0 <= start < end:
        return None
    try:
        value = json.loads(text[start : end + 1])
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, Mapping) else None


def _numbers(value: Any) -> list[float]:
    if isinstance(value, str):
        return [float(number) for number in _NUMBER.findall(value)]
    if isinstance(value, list):
        flat = [one for row in value for one in (row if isinstance(row, list) else [row])]
        return [float(one) for one in flat] if all(map(_is_number, flat)) else []
    return []


def _box(numbers: Sequence[float]) -> Box | None:
    if len(numbers) == 2:
        return numbers[0], numbers[1], numbers[0], numbers[1]
    return _ordered(numbers) if len(numbers) == 4 else None


def _ordered(numbers: Sequence[float]) -> Box:
    left, top, right, bottom = map(float, numbers)
    return min(left, right), min(top, bottom), max(left, right), max(top, bottom)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9


def _is_reference(value: Any) -> bool:
    if not isinstance(value, dict) or not {"action", "box", "text"} & set(value):
        return False
    return (
        isinstance(value.get("action", ""), str)
        and isinstance(value.get("text", ""), str)
        and _are_numbers(value.get("box", [0, 0, 0, 0]), 4)
        and _are_numbers(value.get("screen", [1, 1]), 2)
        and all(side > 0 for side in value.get("screen", [1, 1]))
    )


def _are_numbers(value: Any, length: int) -> bool:
    return isinstance(value, list) and len(value) == length and all(map(_is_number, value))
