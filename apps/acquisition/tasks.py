"""What workers do for acquisition."""

from celery import shared_task

from apps.acquisition.models import Selection
from apps.acquisition.selecting import execute
from apps.core import jobs


@shared_task
def advance_selections() -> None:
    """Choose for every campaign that waits."""
    jobs.work_off(Selection, execute)
