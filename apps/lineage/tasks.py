"""What workers do for lineage."""

from celery import shared_task

from apps.core.jobs import job_queue
from apps.lineage.models import Tracing
from apps.lineage.tracing import execute


@shared_task
def advance_tracings() -> None:
    """Find the judgements that moved the rewards somebody asked about."""
    job_queue.drain_queue(Tracing, execute)
