"""TRL's prompt and completion: {"prompt", "completion"}, texts or messages, of data sets and of logged samples.

GRPOTrainer and RLOOTrainer log tables of samples: {"step", "prompt", "completion", a column for each reward function,
"advantage"}. A single reward is the outcome; of several, whose weights the table does not tell, all are metadata.
`label` (KTO) is feedback, which `import_feedback --format trl-unpaired` reads.
"""

from typing import Any

from apps.trajectories.formats.data_rows.rendered import read_rendered
from apps.trajectories.formats.data_rows.row_trajectories import (
    OUTCOME_READ,
    answer_messages,
    decoded_messages,
    row_trajectory,
)
from apps.trajectories.formats.data_rows.trainer_rows import prompt_and_answers
from workers.schema import Trajectory, clean
from workers.schema.decode import require_object

SIGN = "an object with `prompt` and `completion`"
READ = (*OUTCOME_READ, "/images", "/system")
KNOWN = ("prompt", "completion", "images", "system")
_OF_ROLLOUTS = ("example_id", "answer", "info", "metrics")
_TABLE = ("step", "advantage", "advantages", "index", "epoch", "num_tokens")


def sniff(document: Any) -> bool:
    return has_columns(document) and not is_rollout(document)


def has_columns(document: Any) -> bool:
    return (
        isinstance(document, dict)
        and "prompt" in document
        and isinstance(document.get("completion"), str | list | dict)
        and "response" not in document
    )


def is_rollout(document: dict[str, Any]) -> bool:
    """Whether a row with these columns is one of verifiers."""
    return "reward" in document and any(name in document for name in _OF_ROLLOUTS)


def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    return read_row(row, **_single_reward(row))


def read_row(row: dict[str, Any], *, known: tuple[str, ...] = KNOWN, **fields: Any) -> Trajectory:
    row = row | {name: decoded_messages(row.get(name)) for name in ("prompt", "completion")}
    prompt, completion = row["prompt"], row["completion"]
    if isinstance(prompt, str) and isinstance(completion, str) and not row.get("system"):
        rendered = read_rendered(prompt, completion)
        if rendered is not None:
            fields |= {"known": [name for name in known if name != "images"], "metadata": rendered.about}
            return row_trajectory(rendered.prompt, rendered.answer, row, pointer="/completion", **fields)
    asked, (answer,) = prompt_and_answers(row, "completion", extract=True)
    answer = answer or answer_messages(row, "completion")
    return row_trajectory(asked, answer, row, known=known, pointer="/completion", **fields)


def _single_reward(row: dict[str, Any]) -> dict[str, Any]:
    """The reward of a logged sample, where it has one."""
    if row.get("reward") is not None:
        return {}
    is_table = "step" in row and "advantage" in row
    found = [
        value
        for name, value in row.items()
        if isinstance(value, int | float)
        and not isinstance(value, bool)
        and name not in _TABLE
        and (is_table or name.endswith(("_reward", "_reward_func")))
    ]
    return {"reward": float(found[0])} if len(found) == 1 else {}
