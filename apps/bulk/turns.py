"""When a worker that works on a bulk job lets others come first."""

import time

from django.conf import settings

from apps.bulk.models import BulkChunk, BulkJob
from apps.bulk.selectors import next_bulk_job
from apps.core.jobs import job_queue, shutdown
from apps.core.jobs.job_queue import JobType

TURN_SECONDS = 60.0  # that others may wait for a worker that has begun


class WorkerTurn:
    """A bulk job's turn on a worker. It ends when the worker stops, and after a while if other work waits for it."""

    def __init__(self, job: BulkJob) -> None:
        self.job = job
        self._ends_at = time.monotonic() + TURN_SECONDS

    def is_over(self) -> bool:
        if shutdown.is_asked():
            return True
        if time.monotonic() < self._ends_at:
            return False
        self._ends_at = time.monotonic() + TURN_SECONDS / 12  # looked at now and then
        if other_jobs_wait():
            return True
        other = next_bulk_job()
        return other is not None and other.pk != self.job.pk


def other_jobs_wait() -> bool:
    """Whether jobs of another kind wait for workers of this queue."""
    queue = _queue(next(job_type for job_type in job_queue.JOB_TYPES if job_type.model is BulkChunk))
    others = (
        job_type
        for job_type in job_queue.JOB_TYPES
        if job_type.model is not BulkChunk and _queue(job_type) == queue
    )
    return any(job_type.claimable().exists() for job_type in others)


def _queue(job_type: JobType) -> str:
    for pattern, route in settings.CELERY_TASK_ROUTES.items():
        if job_type.task.startswith(pattern.removesuffix("*")):
            return str(route["queue"])
    return str(settings.CELERY_TASK_DEFAULT_QUEUE)
