"""Questions of Stack Exchange with their answers: {"qid", "question", "answers": [{"answer_id", "text", "pm_score",
"selected", "author"}], ...}: a trajectory for each answer. Scores are feedback (`import_feedback --format
stack-exchange`).
"""

from typing import Any

from apps.trajectories.formats.data_rows.answer_lists import AnswerList
from apps.trajectories.formats.data_rows.row_trajectories import (
    OUTCOME_READ,
    required_text,
    row_id,
    user_text,
)
from workers.schema import Trajectory, clean
from workers.schema.decode import require_object

SIGN = "an object with `question` and `answers` that have a `text` and a `pm_score`"
PLACES = {"/answer": "/answers/*"}
READ = (*OUTCOME_READ, "/question", "/answer/text", "/answer/answer_id")
_ROWS = AnswerList("question", frozenset(("text", "pm_score")), "text", ("text", "answer_id"))
sniff, split = _ROWS.sniff, _ROWS.split


def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    given = require_object(row.get("answer"), pointer="/answer")
    asked = user_text(required_text(row, "question"))
    return _ROWS.trajectory(row, asked, given, id=row_id(given.get("answer_id")))
