"""Runs with a step a record, as a list or JSON lines: {"step_number" | "step" | ..., "action", "observation"}. Steps
with an `episode_id`, `run_id` or the like are of that run; without one, those of a file are one run in their order."""

from itertools import pairwise
from typing import Any

from apps.trajectories.formats.event_log import event_log
from apps.trajectories.formats.general import action_steps
from workers.errors import InvalidRecord
from workers.schema import Trajectory

SIGN = "records with the number of a step, an action and what was observed"
_NUMBERS = ("step_number", "step", "step_id", "step_idx", "step_index", "step_num", "timestep")
_RUNS = ("episode_id", "episode", "run_id", "trajectory_id", "traj_id", "task_id", "rollout_id")
READ = ("/*/reward", "/*/action")


def sniff(document: Any) -> bool:
    steps = document if isinstance(document, list) else [document]
    return bool(steps) and all(_number(step) is not None for step in steps) and action_steps.is_run(steps)


def _number(step: Any) -> int | None:
    found = next((step[key] for key in _NUMBERS if key in step), None) if isinstance(step, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _run(step: Any) -> str | None:
    found = next((step[key] for key in _RUNS if key in step), None) if isinstance(step, dict) else None
    return str(found) if isinstance(found, str | int) else None


Gathered = event_log(key=_run)


def read(document: Any) -> Trajectory:
    steps = document if isinstance(document, list) else [document]
    numbers = [number for step in steps if (number := _number(step)) is not None]
    if any(after <= before for before, after in pairwise(numbers)):
        raise InvalidRecord(
            "holds several runs, or steps out of order; give each step the `run_id` of its run."
        )
    return action_steps.read({"trajectory": steps})
