"""Nectar: {"prompt": dialogue, "answers": [{"answer", "model", "rank"}], "turns", "source", ...}: a trajectory for each
answer. Ranks are feedback (`import_feedback --format nectar`).
"""

from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.data_rows.answer_lists import split_answers
from apps.trajectories.formats.data_rows.dialogues import dialogue_prompt
from apps.trajectories.formats.data_rows.row_trajectories import (
    OUTCOME_READ,
    answer_messages,
    required_text,
    row_trajectory,
)
from workers.schema import Trajectory, clean
from workers.schema.decode import optional_str, require_object

SIGN = "an object with `prompt` and `answers` that have a `rank`"
PLACES = {"/answer": "/answers/*"}
READ = (*OUTCOME_READ, "/prompt", "/answer/answer", "/answer/model")


def sniff(document: Any) -> bool:
    if not isinstance(document, dict) or "prompt" not in document:
        return False
    answers = document.get("answers", [document.get("answer")])
    return (
        isinstance(answers, list)
        and bool(answers)
        and isinstance(answers[0], dict)
        and {"answer", "rank"} <= answers[0].keys()
    )


def split(document: Any) -> Iterator[tuple[str, Any]]:
    return split_answers(document, "answers", "answer")


def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    given = require_object(row.get("answer"), pointer="/answer")
    return row_trajectory(
        dialogue_prompt(required_text(row, "prompt")),
        answer_messages(given, "answer"),
        row,
        known=("prompt", "answer"),
        pointer="/answer/answer",
        agent=optional_str(given.get("model"), pointer="/answer/model") or "",
        metadata={
            "answer": {name: value for name, value in given.items() if name not in ("answer", "model")}
        },
    )
