"""Rows of SWE-agent's runs as Nebius published them: {"instance_id", "model_name", "target", "trajectory", ...}.

A turn is {"role": "system" | "user" | "ai", "text", "system_prompt", "mask", "cutoff_date"}; the agent writes its
command into a block, and what the user says after the agent's first turn is what the command gave. `target` says
whether the issue was resolved; it, the patch and the logs of its tests give the label away: outcome and metadata only.
"""

from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.commands import parted
from apps.trajectories.formats.stated import model_name, stated_success, stated_task_id
from apps.trajectories.formats.turns import observed
from workers.schema import Part, Step, Task, Trajectory, clean, from_messages
from workers.schema.decode import require_list, require_object
from workers.schema.messages import build_trajectory
from workers.schema.patterns import TextPattern

SIGN = "an object with `instance_id` and a `trajectory` whose turns have a `role` and a `text`"
READ = ("/instance_id", "/target", "/resolved", "/model_name", "/trajectory/*/role")
_ISSUE = TextPattern(r"(?s)ISSUE:[ \t]*\r?\n(.*?)\r?\n[ \t]*\r?\nINSTRUCTIONS:")
_KNOWN = ("instance_id", "model_name", "target", "resolved", "trajectory")


def sniff(document: Any) -> bool:
    turns = document.get("trajectory") if isinstance(document, dict) and "instance_id" in document else None
    if not isinstance(turns, list) or not turns:
        return False
    return all(isinstance(turn, dict) and "role" in turn and "text" in turn for turn in turns[:2])


def read(document: Any) -> Trajectory:
    document, _ = clean(require_object(document))
    turns = [
        require_object(turn, pointer=f"/trajectory/{index}")
        for index, turn in enumerate(require_list(document.get("trajectory"), pointer="/trajectory"))
    ]
    steps = observed(from_messages([_message(turn) for turn in turns], pointer="/trajectory"))
    steps = tuple(_acted(step) if step.source == "agent" else step for step in steps)
    asked = next((step.text for step in steps if step.source == "user"), "")
    issue = _ISSUE.search(asked)
    return build_trajectory(
        steps,
        Task(id=stated_task_id(document), instruction=issue[1].strip() if issue else asked),
        pointer="/trajectory",
        agent=model_name(document),
        success=stated_success(document),
        metadata={key: value for key, value in document.items() if key not in _KNOWN and value is not None},
    )


def _message(turn: dict[str, Any]) -> dict[str, Any]:
    """The words of the system are under a name of their own."""
    text = turn.get("text") if turn.get("text") is not None else turn.get("system_prompt")
    rest = {key: turn[key] for key in ("mask", "cutoff_date") if turn.get(key)}
    others = {
        key: value for key, value in turn.items() if key not in ("role", "text", "system_prompt", *rest)
    }
    others = {key: value for key, value in others.items() if value not in (None, False)}
    return {"role": turn.get("role"), "content": text} | rest | others


def _acted(step: Step) -> Step:
    text, call = parted(step.text)
    if call is None or step.tool_calls:
        return step
    return replace(step, message=(Part(text=text),) if text else (), tool_calls=(call,))
