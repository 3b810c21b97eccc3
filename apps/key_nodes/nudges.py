"""Nudges of the task that computes completions; without Celery, for processes that only send them."""

from apps.core.jobs import job_queue
from apps.key_nodes.selectors import stale_trajectories

COMPLETE = "apps.key_nodes.tasks.complete_key_nodes"


def nudge_completions() -> None:
    """For trajectories that were imported since."""
    if stale_trajectories().exists():
        job_queue.nudge(COMPLETE)
