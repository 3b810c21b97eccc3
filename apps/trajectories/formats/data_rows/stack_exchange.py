"""Questions of Stack Exchange with their answers: {"qid", "question", "answers": [{"answer_id", "text", "pm_score",
"selected", "author"}], ...}: a trajectory for each answer. Scores are feedback (`import_feedback --format
stack-exchange`).
"""

from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.data_rows.answer_lists import split_answers
from apps.trajectories.formats.data_rows.row_trajectories import (
    OUTCOME_READ,
    answer_messages,
    required_text,
    row_id,
    row_trajectory,
    user_text,
)
from workers.schema import Trajectory, clean
from workers.schema.decode import require_object

SIGN = "an object with `question` and `answers` that have a `text` and a `pm_score`"
PLACES = {"/answer": "/answers/*"}
READ = (*OUTCOME_READ, "/question", "/answer/text", "/answer/answer_id")


def sniff(document: Any) -> bool:
    if not isinstance(document, dict) or "question" not in document:
        return False
    answers = document.get("answers", [document.get("answer")])
    return (
        isinstance(answers, list)
        and bool(answers)
        and isinstance(answers[0], dict)
        and {"text", "pm_score"} <= answers[0].keys()
    )


def split(document: Any) -> Iterator[tuple[str, Any]]:
    return split_answers(document, "answers", "answer")


def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    given = require_object(row.get("answer"), pointer="/answer")
    return row_trajectory(
        user_text(required_text(row, "question")),
        answer_messages(given, "text"),
        row,
        known=("question", "answer"),
        pointer="/answer/text",
        id=row_id(given.get("answer_id")),
        metadata={
            "answer": {name: value for name, value in given.items() if name not in ("text", "answer_id")}
        },
    )
