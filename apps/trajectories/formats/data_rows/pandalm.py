"""PandaLM's test set: {"idx", "instruction", "input", "response1", "response2", "annotator1..3"}: two trajectories.
What the annotators chose is feedback (`import_feedback --format pandalm`).

Responses that are JSON booleans are the words `True` and `False`.
"""

from typing import Any

from apps.trajectories.formats.data_rows.answer_columns import AnswerColumn, AnswerColumns
from apps.trajectories.formats.data_rows.row_trajectories import agent_text, user_text
from apps.trajectories.formats.data_rows.trainer_rows import Messages

SIGN = "an object with `instruction`, `response1` and `response2`"


def _prompt(row: dict[str, Any]) -> Messages:
    parts = (str(row.get("instruction") or ""), str(row.get("input") or ""))
    return user_text("\n\n".join(part for part in parts if part))


_COLUMNS = AnswerColumns(
    (AnswerColumn("response1"), AnswerColumn("response2")),
    _prompt,
    ("instruction", "input"),
    answer=lambda row, name: agent_text(str(row.get(name))),
)
READ = _COLUMNS.read_patterns
sniff, split, read = _COLUMNS.sniff, _COLUMNS.split, _COLUMNS.read
