"""Stanford Human Preferences: {"history", "human_ref_A", "human_ref_B", "labels", "score_A", "score_B", ...}: a post
and two comments, each a trajectory. Which is better is feedback (`import_feedback --format shp`).
"""

from apps.trajectories.formats.data_rows.answer_columns import AnswerColumn, AnswerColumns
from apps.trajectories.formats.data_rows.row_trajectories import required_text, user_text

SIGN = "an object with `history`, `human_ref_A` and `human_ref_B`"
_ABOUT = ("score", "created_at_utc", "c_root_id")
_COLUMNS = AnswerColumns(
    tuple(AnswerColumn(f"human_ref_{side}", tuple(f"{name}_{side}" for name in _ABOUT)) for side in "AB"),
    lambda row: user_text(required_text(row, "history")),
    ("history",),
)
READ = _COLUMNS.read_patterns
sniff, split, read = _COLUMNS.sniff, _COLUMNS.split, _COLUMNS.read
