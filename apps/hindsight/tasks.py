"""Proposals of hindsight tasks, on default workers."""

from celery import shared_task

from apps.core.jobs import job_queue
from apps.hindsight.models import HindsightProposal


@shared_task
def advance_hindsight() -> None:
    """Do every proposal that is waiting."""
    from apps.hindsight.executor import execute

    job_queue.drain_queue(HindsightProposal, execute)
