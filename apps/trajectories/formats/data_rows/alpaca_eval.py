"""AlpacaEval's annotations: {"instruction", "output_1", "output_2", "generator_1"?, "generator_2"?, "preference",
"annotator"}: two trajectories, of the generators. The preference is feedback (`import_feedback --format alpaca-eval`).
"""

from apps.trajectories.formats.data_rows.alpaca import prompt_messages
from apps.trajectories.formats.data_rows.answer_columns import AnswerColumn, AnswerColumns

SIGN = "an object with `instruction`, `output_1` and `output_2`"
_COLUMNS = AnswerColumns(
    tuple(AnswerColumn(f"output_{side}", (f"generator_{side}",), f"generator_{side}") for side in (1, 2)),
    prompt_messages,
    ("instruction", "input"),
)
READ = _COLUMNS.read_patterns
sniff, split, read = _COLUMNS.sniff, _COLUMNS.split, _COLUMNS.read
