"""HelpSteer and HelpSteer2: {"prompt", "response", "helpfulness", "correctness", "coherence", "complexity",
"verbosity"}; a turn before is marked with `<extra_id_1>`. The scores are feedback (`import_feedback --format
helpsteer`).
"""

from typing import Any

from apps.trajectories.formats.data_rows.dialogues import dialogue_prompt
from apps.trajectories.formats.data_rows.row_trajectories import (
    OUTCOME_READ,
    answer_messages,
    required_text,
    row_trajectory,
)
from workers.schema import Trajectory, clean
from workers.schema.decode import require_object

SIGN = "an object with `prompt`, `response`, `helpfulness` and `verbosity`"
READ = (*OUTCOME_READ, "/prompt", "/response")
ATTRIBUTES = ("helpfulness", "correctness", "coherence", "complexity", "verbosity")


def sniff(document: Any) -> bool:
    return isinstance(document, dict) and all(
        name in document for name in ("prompt", "response", "helpfulness", "verbosity")
    )


def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    prompt = dialogue_prompt(required_text(row, "prompt"))
    return row_trajectory(
        prompt, answer_messages(row, "response"), row, known=("prompt", "response"), pointer="/response"
    )
