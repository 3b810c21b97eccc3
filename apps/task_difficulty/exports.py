"""Tasks in the order to run them, as JSON lines: for the command, the API and the client."""

from collections.abc import Iterator
from typing import Any

import msgspec

from apps.accounts.models import Project
from apps.task_difficulty.selectors import TaskEstimate, estimate_tasks, failed_trajectories

_AT_ONCE = 500


def task_lines(
    project: Project, *, source: str = "", order: str, choice: str = "all", most: int | None = None
) -> Iterator[bytes]:
    """The estimates are computed before the first line. Raises DomainError then."""
    rows = estimate_tasks(project, source=source, order=order, choice=choice)[:most]
    return _lines(project, rows, source)


def _lines(project: Project, rows: list[TaskEstimate], source: str) -> Iterator[bytes]:
    for start in range(0, len(rows), _AT_ONCE):
        part = rows[start : start + _AT_ONCE]
        failed = failed_trajectories(project, [row.pk for row in part if row.failures], source=source)
        for row in part:
            yield (
                msgspec.json.encode(task_document(row, [each.pk for each in failed.get(row.pk, [])])) + b"\n"
            )


def task_document(row: TaskEstimate, replay: list[int]) -> dict[str, Any]:
    """replay: keys of failed trajectories, newest first."""
    estimate = row.estimate
    return {
        "task": row.task.external_id,
        "instruction": row.task.instruction,
        "reference": row.task.reference,
        "metadata": row.task.metadata,
        "difficulty": estimate.difficulty,
        "success": {"expected": estimate.success, "low": estimate.low, "high": estimate.high},
        "learnability": estimate.learnability,
        "outcomes": {"known": row.trials, "successes": row.successes, "failures": row.failures},
        "replay": replay,
    }
