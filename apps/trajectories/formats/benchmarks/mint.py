"""MINT runs: {"state": {"history": [{role, content}], "success", ...}, "task": {"task_id", "prompt", "reference"}}.

What the user says after the agent's first turn is what its code printed: an observation. `success`,
`terminate_reason` and `latest_output` give the label away: outcome and metadata take them, the steps never.
"""

from typing import Any

from apps.trajectories.formats.fields import read_success
from apps.trajectories.formats.turns import observed
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory, clean, from_messages
from workers.schema.decode import optional_str, require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with `task` and a `state` that has a `history`"
READ = ("/task/task_id", "/state/success")


def sniff(document: Any) -> bool:
    state = document.get("state") if isinstance(document, dict) else None
    return isinstance(state, dict) and isinstance(state.get("history"), list) and "task" in document


def read(document: Any) -> Trajectory:
    around, _ = clean({key: value for key, value in require_object(document).items() if key != "state"})
    given = require_object(document.get("state"), pointer="/state")
    state, _ = clean({key: value for key, value in given.items() if key != "history"})
    task = require_object(around.pop("task", None), pointer="/task")
    number, name = task.get("task_id"), optional_str(task.get("task_name"), pointer="/task/task_name")
    if isinstance(number, bool) or not isinstance(number, str | int):
        raise InvalidRecord("task_id is text or a whole number.", pointer="/task/task_id")
    known = ("task_id", "prompt", "reference")
    return build_trajectory(
        observed(from_messages(given.get("history"), pointer="/state/history")),
        Task(
            # Tasks of one kind count from 0, so that the number alone is not enough.
            id=f"{name}/{number}" if name else str(number),
            instruction=optional_str(task.get("prompt"), pointer="/task/prompt") or "",
            reference=optional_str(task.get("reference"), pointer="/task/reference"),
            metadata={key: value for key, value in task.items() if key not in known},
        ),
        pointer="/state/history",
        success=read_success(state.get("success"), pointer="/state/success"),
        metadata=around | {"state": state},
    )
