"""What workers do for active learning."""

from apps.active_learning.models import ItemSelection
from apps.active_learning.selecting import execute
from apps.core.jobs import job_queue
from apps.core.jobs.celery_app import shared_task


@shared_task
def advance_selections() -> None:
    """Choose for every campaign that waits."""
    job_queue.drain_queue(ItemSelection, execute)
