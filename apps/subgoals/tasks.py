"""Proposals of subgoals, on default workers."""

from functools import partial

from apps.core.jobs import job_queue
from apps.core.jobs.celery_app import shared_task
from apps.subgoals.models import SubgoalProposal


@shared_task
def advance_subgoals() -> None:
    """Do every proposal that is waiting."""
    from apps.proposals.executor import execute
    from apps.subgoals.kind import SUBGOALS

    job_queue.drain_queue(SubgoalProposal, partial(execute, SUBGOALS))
