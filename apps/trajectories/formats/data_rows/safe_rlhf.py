"""PKU-SafeRLHF and BeaverTails' preferences: {"prompt", "response_0", "response_1", "better_response_id",
"safer_response_id", "is_response_0_safe", ...}: two trajectories. Which is better and which is safer is feedback
(`import_feedback --format safe-rlhf`).
"""

from apps.trajectories.formats.data_rows.answer_columns import AnswerColumn, AnswerColumns
from apps.trajectories.formats.data_rows.row_trajectories import required_text, user_text

SIGN = "an object with `prompt`, `response_0`, `response_1` and a `better_response_id`"
_ABOUT = ("is_response_{}_safe", "response_{}_source", "response_{}_severity_level", "response_{}_harm_category",
          "response_{}_sha256")  # fmt: skip
_COLUMNS = AnswerColumns(
    tuple(
        AnswerColumn(
            f"response_{side}", tuple(name.format(side) for name in _ABOUT), f"response_{side}_source"
        )
        for side in (0, 1)
    ),
    lambda row: user_text(required_text(row, "prompt")),
    ("prompt",),
    also=("better_response_id",),
)
READ = _COLUMNS.read_patterns
sniff, split, read = _COLUMNS.sniff, _COLUMNS.split, _COLUMNS.read
