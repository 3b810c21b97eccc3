"""Results of verifiers (`vf-eval`, `results.jsonl`): {"example_id", "prompt", "completion", "answer", "task", "reward",
"info", "metrics", "token_usage"?, "timing"?, "stop_condition"?}, a rollout a row.

`task` names the environment, not the task: that is the prompt, which all rollouts of an example share.
"""

from typing import Any

from apps.trajectories.formats.data_rows import prompt_completion
from apps.trajectories.formats.data_rows.prompt_completion import KNOWN
from workers.schema import Trajectory, clean
from workers.schema.decode import require_object

SIGN = (
    "an object with `prompt`, `completion` and `reward`, and an `example_id`, `answer`, `info` or `metrics`"
)
READ = (*prompt_completion.READ, "/answer")


def sniff(document: Any) -> bool:
    return prompt_completion.has_columns(document) and prompt_completion.is_rollout(document)


def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    answer = row.get("answer")
    known = (*KNOWN, "answer") if isinstance(answer, str) and answer else KNOWN
    return prompt_completion.read_row(row, known=known, reference=answer, usage=row.get("token_usage"))
