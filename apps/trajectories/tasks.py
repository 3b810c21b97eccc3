"""What the default worker does for trajectories."""

from celery import shared_task

from apps.core.jobs import job_queue
from apps.trajectories import uploads
from apps.trajectories.models import Import


@shared_task(name=uploads.ADVANCE_IMPORTS)
def advance_imports() -> None:
    """Run every import that waits."""
    job_queue.drain_queue(Import, uploads.run_import)
