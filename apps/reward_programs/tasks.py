"""Dry runs and drafts of reward programs, on default workers."""

from apps.core.jobs import job_queue
from apps.core.jobs.celery_app import shared_task
from apps.reward_programs.models import RewardProgramJob


@shared_task
def advance_reward_programs() -> None:
    """Do every job that is waiting."""
    from apps.reward_programs.executor import execute  # the sandbox, which only the worker needs

    job_queue.drain_queue(RewardProgramJob, execute)
