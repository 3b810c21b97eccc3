"""What workers do for monitoring."""

from celery import shared_task

from apps.core.jobs import job_queue
from apps.monitoring.comparing import execute
from apps.monitoring.models import Comparing


@shared_task
def advance_comparings() -> None:
    """Compare what turns wait for."""
    job_queue.drain_queue(Comparing, execute)
