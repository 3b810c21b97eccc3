"""State changes of inductions and their metrics."""

from apps.metrics.services.inductions import judge_again, start_induction
from apps.metrics.services.metrics import (
    accept_metric,
    create_rubric,
    edit_metric,
    merge_metrics,
    reject_metric,
    restore_metric,
    split_metric,
)

__all__ = [
    "accept_metric",
    "create_rubric",
    "edit_metric",
    "judge_again",
    "merge_metrics",
    "reject_metric",
    "restore_metric",
    "split_metric",
    "start_induction",
]
