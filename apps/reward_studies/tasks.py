"""Reward studies on default workers: the reward service computes the scores."""

from apps.core.jobs import job_queue
from apps.core.jobs.celery_app import shared_task
from apps.reward_studies.models import RewardStudy


@shared_task
def advance_reward_studies() -> None:
    """Do every study that is waiting."""
    from apps.reward_studies.executor import execute  # SciPy, which only the worker that computes needs

    job_queue.drain_queue(RewardStudy, execute)
