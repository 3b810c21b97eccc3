"""What GPU workers do for metrics."""

from apps.core.jobs import job_queue
from apps.core.jobs.celery_app import shared_task
from apps.metrics.executor import execute
from apps.metrics.models import Induction


@shared_task
def advance_inductions() -> None:
    """Induce, or judge again, wherever that waits."""
    job_queue.drain_queue(Induction, execute)
