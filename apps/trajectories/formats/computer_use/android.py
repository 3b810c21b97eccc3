"""AndroidControl's episodes: {"episode_id", "goal", "screenshots", "accessibility_trees", "actions",
"step_instructions"}, or with these as `steps`: {"action_content", "screenshot", "step_instruction"} (UI-S1); and
Android in the Wild, a row a step: {"episode_id", "goal_info", "results/action_type", ...}.

People made both. Screenshots and trees are what was on the screen before an action, and the last after all of them.
Positions of Android in the Wild are (y, x) as shares of the screen: here (x, y), as other formats have them.
"""

import json
from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.benchmarks.browser import seen
from apps.trajectories.formats.computer_use.screens import call_of, in_turn, picture_source
from apps.trajectories.formats.event_log import event_log
from apps.trajectories.formats.fields import read_id
from workers.errors import InvalidRecord
from workers.schema import ObservationResult, Part, Step, Task, ToolCall, Trajectory, clean, parse_json
from workers.schema.decode import optional_str, require_list, require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with `episode_id` and `goal` with `actions`, or `goal_info` with `results/action_type`"
READ = (
    *(
        "/accessibility_trees",
        "/episode_id",
        "/actions",
        "/steps/*/action_content/*",
        "/*/episode_id",
        "/*/goal_info",
        "/*/step_id",
    ),
    *("/*/results~1yx_touch", "/*/results~1yx_lift", "/*/results~1action_type"),
    *(f"/*/image~1ui_annotations_{name}" for name in ("positions", "text", "ui_types")),
)
_TOUCH, _LIFT, _KIND, _TYPED = (
    "results/yx_touch",
    "results/yx_lift",
    "results/action_type",
    "results/type_action",
)
_SEEN = "image/ui_annotations_"
_KNOWN = ("episode_id", "goal", "screenshots", "accessibility_trees", "actions", "step_instructions")
_COLUMNS = {
    "action_content": "actions", "screenshot": "screenshots", "step_instruction": "step_instructions",
}  # fmt: skip
_OF_ROW = ("goal_info", "episode_id", "step_id", "image/encoded", _TOUCH, _LIFT, _KIND, _TYPED)


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and isinstance(document[0], dict) and sniff(document[0])
    if not isinstance(document, dict) or "episode_id" not in document:
        return False
    is_episode = isinstance(document.get("actions"), list | str) or _has_steps(document)
    return ("goal" in document and is_episode) or _KIND in document


def _has_steps(episode: dict[str, Any]) -> bool:
    steps = episode.get("steps")
    return isinstance(steps, list) and bool(steps) and all(
        isinstance(step, dict) and isinstance(step.get("action_content"), dict) for step in steps
    )  # fmt: skip


def _as_lists(episode: dict[str, Any]) -> dict[str, Any]:
    """An episode of steps with its columns as lists."""
    steps = episode["steps"]
    columns = {column: [step.get(key) for step in steps] for key, column in _COLUMNS.items()}
    others = [{key: value for key, value in step.items() if key not in _COLUMNS} for step in steps]
    around = {key: value for key, value in episode.items() if key != "steps"}
    return around | columns | ({"steps": others} if any(others) else {})


def _run_of(row: Any) -> str:
    """Rows of one episode belong together."""
    return str(row.get("episode_id"))


def _is_whole(row: Any) -> bool:
    """Whether it is an episode of AndroidControl, which is a document of its own."""
    return isinstance(row, dict) and _KIND not in row


Gathered = event_log(key=_run_of, whole=_is_whole)


def read(document: Any) -> Trajectory:
    document, _ = clean(document)
    given = [document] if isinstance(document, dict) else require_list(document)
    rows = [require_object(row, pointer=f"/{index}") for index, row in enumerate(given)]
    if not rows:
        raise InvalidRecord("has no row, so there is nothing to judge.")
    first = _as_lists(rows[0]) if _has_steps(rows[0]) else rows[0]
    is_wild = _KIND in first
    goal = optional_str(first.get("goal_info" if is_wild else "goal"), pointer="/goal") or ""
    turns = list(_rows(rows) if is_wild else _episode(first))
    identity = read_id(first.get("episode_id"), pointer="/episode_id")
    around = {} if is_wild else {key: value for key, value in first.items() if key not in _KNOWN}
    return build_trajectory(
        in_turn(goal, turns),
        Task(id=identity or "", instruction=goal),
        pointer="",
        id=identity,
        agent="person",
        metadata=around,
    )


_Turn = tuple[ObservationResult | None, Step | None]


def _listed(episode: dict[str, Any], key: str) -> list[Any]:
    value = episode.get(key)
    value = (
        parse_json(value, pointer=f"/{key}") if isinstance(value, str) and value.startswith("[") else value
    )
    return require_list(value or [], pointer=f"/{key}")


def _episode(episode: dict[str, Any]) -> Iterator[_Turn]:
    actions, words = _listed(episode, "actions"), _listed(episode, "step_instructions")
    pictures, trees = _listed(episode, "screenshots"), _listed(episode, "accessibility_trees")
    for index in range(max(len(actions), len(pictures), len(trees))):
        tree = trees[index] if index < len(trees) else None
        view = seen(_tree(tree), picture_source(pictures[index]) if index < len(pictures) else "", {})
        if index >= len(actions):
            yield view, None
            continue
        action = actions[index]
        action = parse_json(action) if isinstance(action, str) and action.startswith("{") else action
        call = call_of(action)
        text = words[index] if index < len(words) and isinstance(words[index], str) else ""
        message = (Part(text=text),) if text else ()
        calls = (call,) if call else ()
        yield view, Step(source="agent", message=message, tool_calls=calls, extra={"source_index": index})


def _tree(tree: Any) -> str:
    """The elements on the screen, a line each, without what is not set."""
    if not isinstance(tree, list):
        return tree if isinstance(tree, str) else "" if tree is None else json.dumps(tree, ensure_ascii=False)
    lines = [
        {key: value for key, value in element.items() if value not in (None, "", False)}
        if isinstance(element, dict)
        else element
        for element in tree
    ]
    return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)


def _rows(rows: list[dict[str, Any]]) -> Iterator[_Turn]:
    for index, row in enumerate(rows):
        rest = {key: value for key, value in row.items() if key not in _OF_ROW and not key.startswith(_SEEN)}
        view = seen(_annotations(row), picture_source(row.get("image/encoded")), {})
        kind = row.get(_KIND)
        name = (
            kind.replace(" ", "_").replace("-", "_") if isinstance(kind, str) and kind else f"action_{kind}"
        )
        arguments = {name: point for name, key in _ENDS if (point := _point(row.get(key))) is not None}
        if row.get(_TYPED):
            arguments["text"] = row[_TYPED]
        call = ToolCall(name=name, arguments=arguments)
        extra = {"source_index": row.get("step_id", index), "row": rest}
        yield view, Step(source="agent", tool_calls=(call,), extra=extra)


_ENDS = (("start_coordinate", _TOUCH), ("end_coordinate", _LIFT))


def _point(value: Any) -> list[float] | None:
    """(x, y) of what is logged as (y, x); None where there is none, which is (-1, -1)."""
    numbers = isinstance(value, list) and all(isinstance(each, int | float) for each in value)
    if not numbers or len(value) != 2 or min(value) < 0:
        return None
    return [float(value[1]), float(value[0])]


def _annotations(row: dict[str, Any]) -> str:
    """What was recognised on the screen, a line each: its kind, its text and its (y, x, height, width)."""
    found = [row.get(f"{_SEEN}{name}") for name in ("ui_types", "text", "positions")]
    columns = [column if isinstance(column, list) else [] for column in found]
    lines = []
    for index in range(max(map(len, columns))):
        cells = [column[index] if index < len(column) else "" for column in columns]
        lines.append(" ".join(cell if isinstance(cell, str) else json.dumps(cell) for cell in cells))
    return "\n".join(lines)
