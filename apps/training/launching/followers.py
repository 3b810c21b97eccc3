"""Threads of a worker that follow runs on clusters: they wait nearly all the time, so that one worker follows many."""

import logging
import threading

from django.db import connection

from apps.core.database.outage import is_outage
from apps.core.errors import DomainError
from apps.core.jobs import job_queue, shutdown
from apps.core.logs import context
from apps.training import runner
from apps.training.launching.cluster_run import end_job
from apps.training.launching.launchers import launcher_named
from apps.training.launching.left_jobs import runs_with_left_jobs
from apps.training.models import ON_CLUSTERS, TrainingRun
from workers.errors import RewardError

log = logging.getLogger(__name__)

MOST_FOLLOWED = 64  # by one worker
_NAME = "follower of "


def follow_waiting() -> list[threading.Thread]:
    """Claim the runs on clusters that wait, each for a thread, which ends with its run or when this worker stops."""
    started = []
    while not shutdown.is_asked() and _followed() < MOST_FOLLOWED:
        run = job_queue.claim_next(TrainingRun, ON_CLUSTERS)
        if run is None:
            break
        thread = threading.Thread(target=_follow, args=(run,), name=f"{_NAME}{run}")
        thread.start()
        started.append(thread)
    return started


def end_left_jobs() -> None:
    """Of runs that ended while no worker followed them."""
    for run in runs_with_left_jobs():
        try:
            end_job(run, launcher_named(run.launcher))
        except (DomainError, RewardError) as error:
            log.warning("the job of %s could not be ended: %s", run, error.message)


def _followed() -> int:
    return sum(thread.name.startswith(_NAME) for thread in threading.enumerate())


def _follow(run: TrainingRun) -> None:
    try:
        with context(job=f"{run._meta.model_name}-{run.pk}.{run.attempt}"):
            job_queue.work(run, runner.execute)
    except Exception as error:
        if not is_outage(error):
            raise
        log.warning("the database is unavailable; another worker follows %s: %s", run, error)
    finally:
        connection.close()
