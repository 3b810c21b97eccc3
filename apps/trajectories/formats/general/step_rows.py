"""Runs with a step a record, as a list or JSON lines: {"step_number" | "step" | ..., "action", "observation"}, or a
call of a tool a record: {"tool", "tool_input", "output", "timestamp"}. Steps with an `episode_id`, `run_id` or the like
are of that run; without one, those of a file are one run in their order. A step may stand in an envelope next to the
name of its run: {"run_id", "payload": {"step", ...}}."""

from itertools import pairwise
from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.event_log import event_log
from apps.trajectories.formats.general import action_steps
from apps.trajectories.formats.placed import spoken, text_at
from workers.errors import InvalidRecord
from workers.schema import Trajectory

SIGN = "records with the number of a step, an action and what was observed"
_NUMBERS = ("step_number", "step", "step_id", "step_idx", "step_index", "step_num", "timestep")
_RUNS = ("episode_id", "episode", "run_id", "trajectory_id", "traj_id", "task_id", "rollout_id")
_ENVELOPES = ("record", "payload", "data", "agent_step", "event")
_TOOLS, _INPUTS = ("tool", "tool_name"), ("tool_input", "tool_args", "arguments", "parameters")
_SPEAKERS = ("agent_role", "agent_name", "agent")
READ = ("/*/reward", "/*/action", *(f"/*/{key}" for key in (*_TOOLS, *_INPUTS, *_SPEAKERS, "task", "goal")))
READ += tuple(f"/*/{at}/{key}" for at in _ENVELOPES for key in (*_TOOLS, *_INPUTS))


def sniff(document: Any) -> bool:
    steps = list(map(_unwrapped, document if isinstance(document, list) else [document]))
    return (
        bool(steps)
        and all(_number(step) is not None or _is_call(step) for step in steps)
        and action_steps.is_run(steps)
    )


def _unwrapped(record: Any) -> Any:
    """A step out of its envelope."""
    held = [key for key in _ENVELOPES if isinstance(record, dict) and isinstance(record.get(key), dict)]
    if len(held) != 1 or (_number(record[held[0]]) is None and not _is_call(record[held[0]])):
        return record
    return {key: value for key, value in record.items() if key != held[0]} | record[held[0]]


def _is_call(step: Any) -> bool:
    return (
        isinstance(step, dict)
        and "timestamp" in step
        and any(isinstance(step.get(key), str) for key in _TOOLS)
        and any(isinstance(step.get(key), str | dict) for key in _INPUTS)
        and "role" not in step
    )


def _number(step: Any) -> int | None:
    found = next((step[key] for key in _NUMBERS if key in step), None) if isinstance(step, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _run(record: Any) -> str | None:
    step = _unwrapped(record)
    found = next((step[key] for key in _RUNS if key in step), None) if isinstance(step, dict) else None
    return str(found) if isinstance(found, str | int) else None


Gathered = event_log(key=_run)


def read(document: Any) -> Trajectory:
    steps = list(map(_unwrapped, document if isinstance(document, list) else [document]))
    numbers = [number for step in steps if (number := _number(step)) is not None]
    if any(after <= before for before, after in pairwise(numbers)):
        raise InvalidRecord(
            "holds several runs, or steps out of order; give each step the `run_id` of its run."
        )
    rows = [step for step in steps if isinstance(step, dict)]
    asked = {text for step in rows if (text := text_at(step, "task", "goal"))}
    found = action_steps.read({"trajectory": steps} | ({"task": asked.pop()} if len(asked) == 1 else {}))
    speakers = {index: text_at(step, *_SPEAKERS) for index, step in enumerate(rows)}
    return replace(found, steps=spoken(found.steps, speakers))
