"""What GPU workers do: runs, one after the other."""

from celery import shared_task

from apps.core.jobs import job_queue
from apps.training import runner
from apps.training.models import TrainingRun


@shared_task
def advance_runs() -> None:
    """Execute every run that waits; a worker does one at a time."""
    job_queue.drain_queue(TrainingRun, runner.execute)
