"""Lists of rules by a language model, on default workers."""

from celery import shared_task

from apps.core.jobs import job_queue
from apps.policy_documents.models import PolicySplit


@shared_task
def advance_policy_splits() -> None:
    """Do every split that is waiting."""
    from apps.policy_documents.executor import execute

    job_queue.drain_queue(PolicySplit, execute)
