"""What the default worker does for trajectories."""

from apps.core.jobs import job_queue
from apps.core.jobs.celery_app import shared_task
from apps.trajectories import uploads
from apps.trajectories.models import Import


@shared_task(name=uploads.ADVANCE_IMPORTS)
def advance_imports() -> None:
    """Run every import that waits."""
    job_queue.drain_queue(Import, uploads.run_import)
