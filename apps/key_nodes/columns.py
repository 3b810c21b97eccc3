"""The completion rate in the table of trajectories."""

from typing import Any

from apps.core.tables import TableColumn
from apps.trajectories.explorer_columns import ExplorerColumn


def _share(row: Any) -> float | None:
    completion = getattr(row, "key_node_completion", None)
    return None if completion is None else completion.share


COMPLETION_COLUMN = ExplorerColumn(
    TableColumn(
        "key_nodes",
        "Key nodes",
        value=_share,
        sort="key_node_completion__share",
        kind="percent",
        template="key_nodes/cells/_completion.html",
        is_shown=False,
        help="Share of the task's key nodes that the trajectory reaches",
    ),
    related="key_node_completion",
    is_used=lambda project: project.task_key_nodes.exists(),
)
