"""WebGPT's comparisons: {"question": {"full_text", "id", "dataset"}, "answer_0", "answer_1", "quotes_0", "tokens_0",
"score_0", ...}: two trajectories. Scores are feedback (`import_feedback --format webgpt`); quotes are metadata.
"""

from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.data_rows.answer_columns import AnswerColumn, AnswerColumns
from apps.trajectories.formats.data_rows.row_trajectories import required_text, user_text
from apps.trajectories.formats.data_rows.trainer_rows import Messages
from workers.schema import Trajectory, clean

SIGN = "an object with `question`, `answer_0`, `answer_1` and their scores"


def _prompt(row: dict[str, Any]) -> Messages:
    question = row.get("question")
    if isinstance(question, dict):
        return user_text(required_text(question, "full_text"))
    return user_text(required_text(row, "question"))


_COLUMNS = AnswerColumns(
    tuple(
        AnswerColumn(f"answer_{side}", tuple(f"{name}_{side}" for name in ("score", "quotes", "tokens")))
        for side in (0, 1)
    ),
    _prompt,
    ("question",),
)
READ = (*(name for name in _COLUMNS.read_patterns if name != "/question"), "/question/full_text")
split = _COLUMNS.split


def sniff(document: Any) -> bool:
    return _COLUMNS.sniff(document) and ("score_0" in document or "score_1" in document)


def read(document: Any) -> Trajectory:
    found = _COLUMNS.read(document)
    question = document["question"]
    if not isinstance(question, dict):
        return found
    about, _ = clean({name: value for name, value in question.items() if name != "full_text"})
    return replace(found, metadata=found.metadata | {"question": about})
