"""Online-Mind2Web's `result.json`: {"task_id", "task", "action_history": [text], "thoughts", "final_result_response"}.

Screenshots lie in the folder `trajectory` next to it (`0_screenshot.png`, ...), or are named by `input_image_paths`;
one may be seen before each action, and one after the last. An action is `<element> -> CLICK` or any other words.
"""

from itertools import zip_longest
from typing import Any

from apps.trajectories.formats.benchmarks.browser import seen
from apps.trajectories.formats.computer_use.screens import call_of, in_turn, picture_source
from apps.trajectories.formats.fields import read_id
from apps.trajectories.formats.stated import model_name, run_facts, stated_success
from workers.schema import ObservationResult, Part, Step, Task, ToolCall, Trajectory, clean
from workers.schema.decode import optional_str, require_list, require_object
from workers.schema.messages import build_trajectory
from workers.schema.patterns import SPACE, TextPattern

SIGN = "an object with `task` and an `action_history`"
READ = ("/task_id", "/success", "/action_history/*")
_ACTION = TextPattern(rf"(?s)(.*) -> ([A-Z][A-Z_]{{0,30}})(?:[{SPACE}:]+(.*))?")
_KNOWN = (
    "task_id",
    "task",
    "action_history",
    "thoughts",
    "final_result_response",
    "input_image_paths",
    "success",
)


def sniff(document: Any) -> bool:
    if not isinstance(document, dict) or not isinstance(document.get("task"), str):
        return False
    return isinstance(document.get("action_history"), list)


def read(document: Any) -> Trajectory:
    document, _ = clean(require_object(document))
    goal = optional_str(document.get("task"), pointer="/task") or ""
    actions = require_list(document.get("action_history"), pointer="/action_history")
    thoughts = require_list(document.get("thoughts") or [], pointer="/thoughts")
    pictures = require_list(document.get("input_image_paths") or [], pointer="/input_image_paths")
    turns: list[tuple[ObservationResult | None, Step | None]] = []
    for index, (action, thought) in enumerate(zip_longest(actions, thoughts)):
        view = _view(pictures[index]) if index < len(pictures) else None
        turns.append((view, _acted(action, thought, index)))
    turns += [(_view(picture), None) for picture in pictures[len(turns) :]]
    answer = optional_str(document.get("final_result_response"), pointer="/final_result_response")
    if answer:
        turns.append(
            (
                None,
                Step(source="agent", message=(Part(text=answer),), extra={"field": "final_result_response"}),
            )
        )
    model = model_name(document)
    return build_trajectory(
        in_turn(goal, turns),
        Task(id=read_id(document.get("task_id"), pointer="/task_id") or "", instruction=goal),
        pointer="/action_history",
        agent=model or str(document.get("agent") or ""),
        success=stated_success(document),
        metadata=run_facts(document, document.get("usage"), model=model)
        | {
            key: value
            for key, value in document.items()
            if key not in _KNOWN and value not in (None, "", [], {})
        },
    )


def _view(picture: Any) -> ObservationResult:
    return seen("", picture_source(picture), {})


def _acted(action: Any, thought: Any, index: int) -> Step:
    call = _called(action) if isinstance(action, str) else call_of(action)
    return Step(
        source="agent",
        message=(Part(text=thought),) if isinstance(thought, str) and thought else (),
        tool_calls=(call,) if call else (),
        extra={"source_index": index},
    )


def _called(action: str) -> ToolCall | None:
    if (match := _ACTION.fullmatch(action)) is None:
        return ToolCall(name="act", arguments={"action": action}) if action.strip() else None
    return ToolCall(
        name=match[2].lower(),
        arguments={"element": match[1]} | ({"value": match[3]} if match[3] else {}),
        extra={"action": action},
    )
