"""Completions of key nodes, on default workers."""

from apps.core.jobs import job_queue
from apps.core.jobs.celery_app import shared_task
from apps.key_nodes.selectors import stale_trajectories

COMPLETE = "apps.key_nodes.tasks.complete_key_nodes"


@shared_task
def complete_key_nodes() -> None:
    """Of every trajectory that has none of the newest revision."""
    from apps.key_nodes.services import refresh_completions

    refresh_completions()


def nudge_completions() -> None:
    """For trajectories that were imported since."""
    if stale_trajectories().exists():
        job_queue.nudge(COMPLETE)
