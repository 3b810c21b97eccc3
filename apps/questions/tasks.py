"""Questions on GPU workers, which can ask language models in folders."""

from apps.core.jobs import job_queue
from apps.core.jobs.celery_app import shared_task
from apps.questions.executor import execute
from apps.questions.models import TrajectoryQuestion


@shared_task
def advance_questions() -> None:
    """Answer every question that is waiting."""
    job_queue.drain_queue(TrajectoryQuestion, execute)
