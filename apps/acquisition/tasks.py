"""What workers do for acquisition."""

from celery import shared_task

from apps.acquisition.models import Selection
from apps.acquisition.selecting import execute
from apps.core.jobs import job_queue


@shared_task
def advance_selections() -> None:
    """Choose for every campaign that waits."""
    job_queue.work_off(Selection, execute)
