"""What workers do for active learning."""

from celery import shared_task

from apps.active_learning.models import ItemSelection
from apps.active_learning.selecting import execute
from apps.core.jobs import job_queue


@shared_task
def advance_selections() -> None:
    """Choose for every campaign that waits."""
    job_queue.drain_queue(ItemSelection, execute)
