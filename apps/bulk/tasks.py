"""Chunks of bulk jobs on GPU workers, where the models are."""

from celery import shared_task

from apps.bulk.running import work_on_chunks


@shared_task
def advance_bulk_jobs() -> None:
    """Work on the chunks that wait, until none does or others wait for this worker."""
    work_on_chunks()
