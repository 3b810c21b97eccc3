"""Folds of tasks, for a choice within training data: the same however the records are ordered."""

import hashlib
from collections.abc import Sequence


def task_folds(tasks: Sequence[str], folds: int) -> list[int]:
    """By record, the fold of its task: about equally many tasks in each."""
    order = sorted(set(tasks), key=lambda task: hashlib.sha256(task.encode()).digest())
    place = {task: number for number, task in enumerate(order)}
    return [place[task] % folds for task in tasks]
