"""Nectar: {"prompt": dialogue, "answers": [{"answer", "model", "rank"}], "turns", "source", ...}: a trajectory for each
answer. Ranks are feedback (`import_feedback --format nectar`).
"""

from typing import Any

from apps.trajectories.formats.data_rows.answer_lists import AnswerList
from apps.trajectories.formats.data_rows.dialogues import dialogue_prompt
from apps.trajectories.formats.data_rows.row_trajectories import OUTCOME_READ, required_text
from workers.schema import Trajectory, clean
from workers.schema.decode import optional_str, require_object

SIGN = "an object with `prompt` and `answers` that have a `rank`"
PLACES = {"/answer": "/answers/*"}
READ = (*OUTCOME_READ, "/prompt", "/answer/answer", "/answer/model")
_ROWS = AnswerList("prompt", frozenset(("answer", "rank")), "answer", ("answer", "model"))
sniff, split = _ROWS.sniff, _ROWS.split


def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    given = require_object(row.get("answer"), pointer="/answer")
    asked = dialogue_prompt(required_text(row, "prompt"))
    model = optional_str(given.get("model"), pointer="/answer/model") or ""
    return _ROWS.trajectory(row, asked, given, agent=model)
