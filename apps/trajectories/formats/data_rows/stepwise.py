"""TRL's stepwise supervision: {"prompt", "completions": [text], "labels": [bool]}: an agent step for each completion.
The labels are feedback (`import_feedback --format trl-stepwise`).
"""

from typing import Any

from apps.trajectories.formats.data_rows.row_trajectories import OUTCOME_READ
from apps.trajectories.formats.data_rows.solution_steps import stepwise_trajectory
from apps.trajectories.formats.data_rows.trainer_rows import prompt_and_answers
from workers.errors import InvalidRecord
from workers.schema import Trajectory, clean
from workers.schema.decode import convert, require_object

SIGN = "an object with `prompt`, `completions` and `labels`"
READ = (*OUTCOME_READ, "/completions", "/images", "/system")


def sniff(document: Any) -> bool:
    return (
        isinstance(document, dict)
        and "prompt" in document
        and all(isinstance(document.get(name), list) for name in ("completions", "labels"))
    )


def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    prompt, _ = prompt_and_answers(row, extract=False)
    steps = convert(row.get("completions"), list[str], pointer="/completions")
    if not steps:
        raise InvalidRecord("there is no completion; a trajectory needs one.", pointer="/completions")
    known = ("prompt", "completions", "images", "system")
    return stepwise_trajectory(prompt, steps, row, known=known, pointer="/completions")
