"""Battles of Chatbot Arena and MT-Bench: {"conversation_a", "conversation_b", "model_a", "model_b", "winner",
"judge"?}: two trajectories, of the two models. The winner is feedback (`import_feedback --format chatbot-arena`).
"""

from apps.trajectories.formats.data_rows.answer_columns import AnswerColumn, AnswerColumns

SIGN = "an object with `conversation_a` and `conversation_b`"
_COLUMNS = AnswerColumns(
    tuple(AnswerColumn(f"conversation_{side}", (f"model_{side}",), f"model_{side}") for side in "ab"),
    lambda row: [],
    (),
)
READ = _COLUMNS.read_patterns
sniff, split, read = _COLUMNS.sniff, _COLUMNS.split, _COLUMNS.read
