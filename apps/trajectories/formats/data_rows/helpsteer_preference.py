"""Preferences of HelpSteer2 and HelpSteer3: {"prompt", "response_1", "response_2", "preference_strength"} and
{"context", "response1", "response2", "overall_preference"}: two trajectories. Preferences are feedback
(`import_feedback --format helpsteer-preference`).
"""

from typing import Any

from apps.trajectories.formats.data_rows.answer_columns import AnswerColumn, AnswerColumns
from apps.trajectories.formats.data_rows.dialogues import dialogue_prompt
from apps.trajectories.formats.data_rows.row_trajectories import required_text
from apps.trajectories.formats.data_rows.trainer_rows import Messages, message_column

SIGN = "an object with two responses, and a `preference_strength` or `overall_preference`"
LABELS = ("preference_strength", "overall_preference")


def _prompt(row: dict[str, Any]) -> Messages:
    if "context" in row:
        return message_column(row, "context")
    return dialogue_prompt(required_text(row, "prompt"))


_COLUMNS = AnswerColumns(
    tuple(AnswerColumn(name) for name in ("response1", "response2", "response_1", "response_2")),
    _prompt,
    ("prompt", "context"),
)
READ = _COLUMNS.read_patterns
split, read = _COLUMNS.split, _COLUMNS.read


def sniff(document: Any) -> bool:
    return (
        isinstance(document, dict)
        and any(label in document for label in LABELS)
        and any(column.name in document for column in _COLUMNS.columns)
        and ("prompt" in document or "context" in document)
    )
