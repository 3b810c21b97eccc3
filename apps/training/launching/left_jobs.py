"""Jobs on clusters whose runs ended while no worker followed them."""

from django.db.models import QuerySet

from apps.core.jobs import job_queue
from apps.training.models import ON_CLUSTERS, TrainingRun
from apps.training.services import FOLLOW

EVERY_SECONDS = 30.0
_ENDED = (job_queue.JobState.CANCELLED, job_queue.JobState.FAILED, job_queue.JobState.SUCCEEDED)


def runs_with_left_jobs() -> QuerySet[TrainingRun]:
    return TrainingRun.objects.filter(ON_CLUSTERS, state__in=_ENDED, launched__is_open=True)


def nudge_for_left_jobs() -> None:
    """beat calls it; a worker ends them."""
    if runs_with_left_jobs().exists():
        job_queue.nudge(FOLLOW)
