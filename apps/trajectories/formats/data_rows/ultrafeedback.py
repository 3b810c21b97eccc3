"""UltraFeedback: {"instruction", "completions": [{"model", "response", "custom_system_prompt", "principle",
"annotations", "overall_score", "fine-grained_score", "critique"}], "source", ...}: a trajectory for each completion.

The system prompt differs between completions, so the task is the instruction alone. Ratings and critiques are feedback
(`import_feedback --format ultrafeedback`).
"""

from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.data_rows.answer_lists import split_answers
from apps.trajectories.formats.data_rows.row_trajectories import (
    OUTCOME_READ,
    answer_messages,
    required_text,
    row_trajectory,
    user_text,
)
from apps.trajectories.formats.data_rows.trainer_rows import prompt_task
from workers.schema import Trajectory, clean
from workers.schema.decode import optional_str, require_object

SIGN = "an object with `instruction` and `completions` that have a `response`"
PLACES = {"/completion": "/completions/*"}
READ = (
    *OUTCOME_READ,
    "/instruction",
    *(f"/completion/{name}" for name in ("response", "model", "custom_system_prompt")),
)


def sniff(document: Any) -> bool:
    if not isinstance(document, dict) or "instruction" not in document:
        return False
    completions = document.get("completions", [document.get("completion")])
    return (
        isinstance(completions, list)
        and bool(completions)
        and isinstance(completions[0], dict)
        and "response" in completions[0]
    )


def split(document: Any) -> Iterator[tuple[str, Any]]:
    return split_answers(document, "completions", "completion")


def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    completion = require_object(row.get("completion"), pointer="/completion")
    asked = user_text(required_text(row, "instruction"))
    system = optional_str(completion.get("custom_system_prompt"), pointer="/completion/custom_system_prompt")
    prompt = [{"role": "system", "content": system}, *asked] if system else asked
    known = ("response", "model", "custom_system_prompt")
    about = {name: value for name, value in completion.items() if name not in known}
    return row_trajectory(
        prompt,
        answer_messages(completion, "response"),
        row,
        known=("instruction", "completion"),
        pointer="/completion/response",
        task=prompt_task(asked, []),
        agent=optional_str(completion.get("model"), pointer="/completion/model") or "",
        metadata={"completion": about},
    )
