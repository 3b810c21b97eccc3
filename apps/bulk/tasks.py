"""Chunks of bulk jobs on GPU workers, where the models are."""

from apps.bulk.running import work_on_chunks
from apps.core.jobs.celery_app import shared_task


@shared_task
def advance_bulk_jobs() -> None:
    """Work on the chunks that wait, until none does or others wait for this worker."""
    work_on_chunks()
