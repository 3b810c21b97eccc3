"""tau-bench result files: an array of {task_id, reward, info, traj, trial}, traj being OpenAI messages.

`reward` is 1 for a success; it and `info` (the true actions, the reward's workings) give the label away: the outcome
and the metadata take them, the steps never.
"""

from typing import Any

from apps.trajectories.formats.fields import read_task
from workers.schema import Task, Trajectory, clean, from_messages
from workers.schema.decode import finite, optional_str, require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with `task_id` and `traj`"
READ = ("/reward", "/task_id", "/traj/*/reward")


def sniff(document: Any) -> bool:
    traj = document.get("traj") if isinstance(document, dict) and "task_id" in document else None
    return isinstance(traj, list) and all(
        isinstance(message, dict) and "role" in message for message in traj[:1]
    )


def read(document: Any) -> Trajectory:
    document = require_object(document)
    around, _ = clean({key: value for key, value in document.items() if key != "traj"})
    info = require_object(around.get("info") or {}, pointer="/info")
    given = require_object(info.get("task") or {}, pointer="/info/task")
    instruction = optional_str(given.get("instruction"), pointer="/info/task/instruction") or ""
    reward = finite(around.pop("reward", None), pointer="/reward")
    task = read_task(around.pop("task_id", None), pointer="/task_id")
    return build_trajectory(
        from_messages(document.get("traj"), pointer="/traj"),
        Task(id=task.id, instruction=instruction),
        pointer="/traj",
        reward=reward,
        success=None if reward is None else reward == 1,
        metadata=around,
    )
