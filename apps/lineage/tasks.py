"""Celery tasks of lineage."""

from apps.core.jobs import job_queue
from apps.core.jobs.celery_app import shared_task
from apps.lineage.models import Tracing
from apps.lineage.tracing import execute


@shared_task
def advance_tracings() -> None:
    """Compute the influence of feedback records for every waiting tracing."""
    job_queue.drain_queue(Tracing, execute)
