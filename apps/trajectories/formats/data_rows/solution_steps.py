"""A solution that is labelled step by step: an agent step for each of its steps."""

from typing import Any

from apps.trajectories.formats.data_rows.row_trajectories import row_trajectory
from apps.trajectories.formats.data_rows.trainer_rows import Messages
from workers.schema import Trajectory


def stepwise_trajectory(prompt: Messages, steps: list[str], row: dict[str, Any], **fields: Any) -> Trajectory:
    return row_trajectory(prompt, [{"role": "assistant", "content": step} for step in steps], row, **fields)
