"""Rollouts that verl's trainers dump (`rollout_data_dir`, `validation_data_dir`): {"input", "output", "gts"?, "score",
"step", ...what the reward function returned}, a sample a row.

`score` is the reward, `gts` the reference answer. `acc` is verl's own name for whether the answer is right.
"""

from typing import Any

from apps.trajectories.formats.data_rows import input_output
from apps.trajectories.formats.data_rows.input_output import KNOWN
from workers.schema import Trajectory, clean
from workers.schema.decode import finite, require_object

SIGN = "an object with `input`, `output`, `score` and `step`"
READ = (*input_output.READ, "/score", "/acc", "/gts")


def sniff(document: Any) -> bool:
    return input_output.has_columns(document) and input_output.is_dump(document)


def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    right, truth = row.get("acc"), row.get("gts")
    known = [*KNOWN, "score", *(["gts"] if isinstance(truth, str) and truth else [])]
    fields: dict[str, Any] = {"reward": finite(row.get("score"), pointer="/score")}
    if isinstance(right, bool | int | float) and right in (0, 1):
        fields["success"] = bool(right)
    return input_output.read_row(row, known=tuple(known), reference=truth, **fields)
