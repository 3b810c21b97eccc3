"""Mind2Web's demonstrations: {"annotation_id", "confirmed_task", "actions": [{"operation", "pos_candidates",
"cleaned_html"}], "action_reprs", "website", ...}; of Multimodal-Mind2Web a row is one action, with its screenshot.

People made them, so that the agent is a person. The page before an action is `cleaned_html`, or `raw_html` where there
is no other; the element acted on is the first of `pos_candidates`, whose box is where it is on the page.
"""

import json
import math
from typing import Any

from apps.trajectories.formats.benchmarks.browser import seen
from apps.trajectories.formats.computer_use.screens import in_turn, picture_source
from apps.trajectories.formats.event_log import event_log
from workers.errors import InvalidRecord
from workers.schema import ObservationResult, Step, Task, ToolCall, Trajectory, clean, parse_json
from workers.schema.decode import optional_str, require_list, require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with `confirmed_task`, and `actions`, `action_reprs` or the `operation` of one action"
_OF_ACTION = ("pos_candidates", "operation", "target_action_reprs")
READ = (
    *("/*/annotation_id", "/*/confirmed_task", "/*/target_action_index", "/*/action_reprs", "/action_reprs"),
    *(f"{place}/{name}" for place in ("/*", "/actions/*") for name in _OF_ACTION),
)
_PAGE = "the page before it was cleaned, of which `cleaned_html` is read"
_OTHERS = "elements of the page that were not acted on, for training a ranker; the page itself is read"
LEFT_OUT = {
    f"{place}/{name}": reason
    for place in ("/*", "/actions/*")
    for name, reason in (("raw_html", _PAGE), ("neg_candidates", _OTHERS))
}
_OF_TASK = ("website", "domain", "subdomain")
_BOX = "bounding_box_rect"


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and sniff(document[0]) and isinstance(document[0], dict)
    if not isinstance(document, dict) or not isinstance(document.get("confirmed_task"), str):
        return False
    if _is_told(document):
        return True
    is_known = isinstance(document.get("annotation_id"), str)
    return is_known and (isinstance(document.get("actions"), list) or "operation" in document)


def _is_told(row: Any) -> bool:
    """Whether actions are only told, as `[button]  Search -> CLICK`: of lists of tasks made for other agents."""
    if not isinstance(row, dict) or "actions" in row or "operation" in row:
        return False
    told = row.get("action_reprs")
    return isinstance(told, list) and bool(told) and all(isinstance(each, str) for each in told[:3])


def _run_of(row: Any) -> str:
    """Rows of one action belong together."""
    return str(row.get("annotation_id"))


def _is_whole(row: Any) -> bool:
    return isinstance(row, dict) and (isinstance(row.get("actions"), list) or _is_told(row))


Gathered = event_log(key=_run_of, whole=_is_whole)


def read(document: Any) -> Trajectory:
    document, _ = clean(document)
    row, actions = _actions(document)
    reprs = row.get("action_reprs")
    texts = parse_json(reprs) if isinstance(reprs, str) and reprs.startswith("[") else reprs
    texts = texts if isinstance(texts, list) else []
    instruction = optional_str(row.get("confirmed_task"), pointer="/confirmed_task") or ""
    turns = []
    for n, (action, where) in enumerate(actions):
        target = action.get("target_action_reprs") or (texts[n] if n < len(texts) else None)
        turns.append((_view(action, where), _acted(action, target, n, where)))
    task = {key: row[key] for key in _OF_TASK if row.get(key)}
    name = "annotation_id" if "annotation_id" in row else "id"
    identity = optional_str(row.get(name), pointer=f"/{name}") or ""
    return build_trajectory(
        in_turn(instruction, turns),
        Task(id=identity, instruction=instruction, metadata=task),
        pointer="/actions" if "actions" in row else "",
        id=identity or None,
        agent="person",
        metadata={"action_reprs": texts} if texts else {},
    )


def _actions(document: Any) -> tuple[dict[str, Any], list[tuple[dict[str, Any], str]]]:
    """The row that says what the task was, and the actions with where they stand."""
    if _is_told(document):
        return document, [(_told_action(each), "") for each in document["action_reprs"]]
    if isinstance(document, dict):
        given = require_list(document.get("actions"), pointer="/actions")
        return document, [
            (require_object(each, pointer=f"/actions/{n}"), f"/actions/{n}") for n, each in enumerate(given)
        ]
    rows = [(require_object(row, pointer=f"/{n}"), f"/{n}") for n, row in enumerate(require_list(document))]
    if not rows:
        raise InvalidRecord("has no row, so there is nothing to judge.")
    return rows[0][0], sorted(rows, key=lambda action: _place(action[0]))


def _told_action(told: Any) -> dict[str, Any]:
    """`[combobox]  Reservation type -> SELECT: Pickup` as an action: what it was done to, and what was done."""
    target, _, done = str(told).rpartition(" -> ")
    name, colon, value = done.partition(": ")
    operation = {"op": name.strip() or "act"} | ({"value": value} if colon else {})
    return {"operation": operation, "target_action_reprs": target.strip() or str(told)}


def _place(row: dict[str, Any]) -> int:
    index = row.get("target_action_index")
    return (
        int(index)
        if isinstance(index, int) or (isinstance(index, str) and index.isdecimal() and len(index) < 9)
        else 0
    )


def _view(action: dict[str, Any], where: str) -> ObservationResult:
    page = action.get("cleaned_html") or action.get("raw_html")
    picture = action.get("screenshot")
    if isinstance(picture, dict):  # as `datasets` writes a picture
        picture = picture.get("bytes") or picture.get("path")
    return seen(optional_str(page, pointer=f"{where}/cleaned_html") or "", picture_source(picture), {})


def _acted(action: dict[str, Any], target: Any, n: int, where: str) -> Step:
    given = _decoded(action.get("operation"), f"{where}/operation")
    operation = require_object(given or {}, pointer=f"{where}/operation")
    name = optional_str(operation.get("op"), pointer=f"{where}/operation/op") or "act"
    candidates = require_list(action.get("pos_candidates") or [], pointer=f"{where}/pos_candidates")
    element = _decoded(candidates[0], f"{where}/pos_candidates/0") if candidates else {}
    element = require_object(element, pointer=f"{where}/pos_candidates/0")
    arguments: dict[str, Any] = {"target": target} if isinstance(target, str) and target else {}
    arguments |= {"value": operation["value"]} if operation.get("value") else {}
    arguments |= {key: element[key] for key in ("tag", "backend_node_id") if element.get(key) is not None}
    arguments |= {"bbox": box} if (box := _box(element.get("attributes"))) else {}
    extra = {
        "operation": operation,
        "candidates": [_decoded(each, f"{where}/pos_candidates") for each in candidates],
    }
    return Step(
        source="agent",
        tool_calls=(ToolCall(name=name.lower(), arguments=arguments, extra=extra),),
        extra={"source_index": n} | {key: action[key] for key in ("action_uid",) if action.get(key)},
    )


def _decoded(value: Any, pointer: str) -> Any:
    return parse_json(value, pointer=pointer) if isinstance(value, str) and value[:1] in ("{", "[") else value


def _box(attributes: Any) -> list[float] | None:
    """(x, y, width, height) of an element, from its attributes, which are JSON in a text."""
    try:
        found = json.loads(attributes) if isinstance(attributes, str) else attributes
        numbers = [float(number) for number in str(found[_BOX]).split(",")]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return numbers if len(numbers) == 4 and all(map(math.isfinite, numbers)) else None
