"""AgentNet, the data of OpenCUA: {"task_id", "instruction", "traj": [{"index", "image", "value": {"code", ...}}]}; and
AgentNetBench: {"task_id", "high_level_task_description", "steps": [{"image", "action", "inner_monologue"}]}.

The picture is what was on the screen before the action. `observation` and `thought` of the generated monologue are
reasoning, the action in words is what the agent said, the code is the call. `task_completed`, what was right of the
last step, and the true actions give the label away: they go to outcome, metadata and extra.
"""

from typing import Any

from apps.trajectories.formats.benchmarks.browser import called, seen
from apps.trajectories.formats.computer_use.screens import in_turn, picture_source
from apps.trajectories.formats.fields import read_success
from workers.schema import Part, Step, Task, Trajectory, clean
from workers.schema.decode import optional_str, require_list, require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with `traj` or `steps` of objects with an `image` and a `value` with `code`, or an `inner_monologue`"
READ = ("/task_id", "/task_completed", "/traj/*/index", "/steps/*/step_num")
_TASK = (
    "instruction",
    "high_level_task_description",
    "natural_language_task",
    "actual_task",
    "user_task_description",
)
_REASONING = ("observation", "thought")
_WORDS = ("action", "low_level_instruction")
_KNOWN = ("task_id", "traj", "steps", "task_completed")


def sniff(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    traj, steps = document.get("traj"), document.get("steps")
    if isinstance(traj, list) and traj and isinstance(traj[0], dict):
        return "image" in traj[0] and isinstance(traj[0].get("value"), dict)
    return (
        isinstance(steps, list)
        and bool(steps)
        and isinstance(steps[0], dict)
        and "inner_monologue" in steps[0]
    )


def read(document: Any) -> Trajectory:
    document, _ = clean(require_object(document))
    at = "/traj" if isinstance(document.get("traj"), list) else "/steps"
    turns = []
    for index, given in enumerate(require_list(document.get(at[1:]), pointer=at)):
        where = f"{at}/{index}"
        given = require_object(given, pointer=where)
        view = seen("", picture_source(optional_str(given.get("image"), pointer=f"{where}/image")), {})
        turns.append((view, _acted(given, index, where)))
    goals = [text for key in _TASK if (text := optional_str(document.get(key), pointer=f"/{key}"))]
    goal = goals[0] if goals else ""
    return build_trajectory(
        in_turn(goal, turns),
        Task(id=optional_str(document.get("task_id"), pointer="/task_id") or "", instruction=goal),
        pointer=at,
        agent="person",
        success=read_success(document.get("task_completed"), pointer="/task_completed"),
        metadata={
            key: value for key, value in document.items() if key not in _KNOWN and value not in (None, goal)
        },
    )


def _acted(given: dict[str, Any], index: int, where: str) -> Step:
    name = "value" if isinstance(given.get("value"), dict) else "inner_monologue"
    value = require_object(given.get(name) or {}, pointer=f"{where}/{name}")
    code = optional_str(value.get("code") or given.get("action"), pointer=f"{where}/code")
    texts = [value[key] for key in _REASONING if isinstance(value.get(key), str) and value[key]]
    said = next((value[key] for key in _WORDS if isinstance(value.get(key), str) and value[key]), "")
    known = (*_REASONING, *_WORDS, "code")
    rest = {key: item for key, item in value.items() if key not in known and item not in (None, "", [])}
    around = {
        key: item for key, item in given.items() if key not in ("image", "index", "step_num", "action", name)
    }
    return Step(
        source="agent",
        message=(Part(text=said),) if said else (),
        reasoning="\n\n".join(texts) or None,
        tool_calls=(called(code),) if code and code.strip() else (),
        extra={"source_index": given.get("index", given.get("step_num", index))}
        | around
        | ({name: rest} if rest else {}),
    )
