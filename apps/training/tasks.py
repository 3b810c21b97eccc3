"""What workers do with training runs."""

from apps.core.jobs import job_queue
from apps.core.jobs.celery_app import shared_task
from apps.training import public_models, runner
from apps.training.launching import followers
from apps.training.model_export_jobs import build_model_export
from apps.training.models import ON_WORKERS, ModelExport, ModelImport, TrainingRun


@shared_task
def advance_runs() -> None:
    """Execute every run that waits for this machine; a worker does one at a time."""
    job_queue.drain_queue(TrainingRun, runner.execute, ON_WORKERS)


@shared_task
def advance_model_exports() -> None:
    """Write every export of a model that waits."""
    job_queue.drain_queue(ModelExport, build_model_export)


@shared_task
def follow_runs() -> None:
    """Submit and follow every run on a cluster that waits, and end the jobs of those that were cancelled meanwhile."""
    followers.end_left_jobs()
    followers.follow_waiting()


@shared_task
def advance_model_imports() -> None:
    """Execute every import of a model that waits."""
    job_queue.drain_queue(ModelImport, public_models.execute)
