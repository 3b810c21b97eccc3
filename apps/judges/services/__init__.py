"""State changes of judges and their runs."""

from apps.judges.services.judge_runs import (
    retry_failed,
    save_as_annotations,
    start_judge_run,
    start_test_run,
    store_results,
)
from apps.judges.services.judges import JudgeSpec, create_judge, delete_judge, lock_judge

__all__ = [
    "JudgeSpec",
    "create_judge",
    "delete_judge",
    "lock_judge",
    "retry_failed",
    "save_as_annotations",
    "start_judge_run",
    "start_test_run",
    "store_results",
]
