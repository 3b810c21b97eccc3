"""Proposals of hindsight tasks, on default workers."""

from functools import partial

from apps.core.jobs import job_queue
from apps.core.jobs.celery_app import shared_task
from apps.hindsight.models import HindsightProposal


@shared_task
def advance_hindsight() -> None:
    """Do every proposal that is waiting."""
    from apps.hindsight.kind import HINDSIGHT
    from apps.proposals.executor import execute

    job_queue.drain_queue(HindsightProposal, partial(execute, HINDSIGHT))
