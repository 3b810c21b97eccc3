"""Celery tasks of the sample project."""

from apps.core.jobs import job_queue
from apps.core.jobs.celery_app import shared_task
from apps.demo.models import SampleLoad
from apps.demo.sample_loads import fill_sample


@shared_task
def load_samples() -> None:
    """Load every sample project that waits."""
    job_queue.drain_queue(SampleLoad, fill_sample)
