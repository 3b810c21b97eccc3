"""What GPU workers do for judges: models in folders are asked there."""

from celery import shared_task

from apps.core.jobs import job_queue
from apps.judges.executing import execute
from apps.judges.models import JudgeRun


@shared_task
def advance_judge_runs() -> None:
    """Judge wherever that waits."""
    job_queue.drain_queue(JudgeRun, execute)
