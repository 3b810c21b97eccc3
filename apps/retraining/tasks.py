"""Tasks of retraining."""

from apps.core.jobs import job_queue
from apps.core.jobs.celery_app import shared_task
from apps.retraining.comparison import execute_comparison
from apps.retraining.models import ModelComparison


@shared_task
def advance_comparisons() -> None:
    """Compare the models that retraining cycles wait for."""
    job_queue.drain_queue(ModelComparison, execute_comparison)
