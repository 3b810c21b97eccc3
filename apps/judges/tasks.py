"""Judge runs on GPU workers, which can ask language models in folders."""

from apps.core.jobs import job_queue
from apps.core.jobs.celery_app import shared_task
from apps.judges.executor import execute
from apps.judges.models import JudgeRun


@shared_task
def advance_judge_runs() -> None:
    """Execute every judge run that is waiting."""
    job_queue.drain_queue(JudgeRun, execute)
