"""What GPU workers do for metrics."""

from celery import shared_task

from apps.core import jobs
from apps.metrics.inducing import execute
from apps.metrics.models import Induction


@shared_task
def advance_inductions() -> None:
    """Induce, or judge again, wherever that waits."""
    jobs.work_off(Induction, execute)
