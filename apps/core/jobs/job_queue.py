"""Jobs are rows; broker messages only nudge. Claiming is by SKIP LOCKED and an attempt number.

A worker that holds a job beats its heart; a running job without a heartbeat is eligible again. Every write a job
causes goes through `fenced`, so that an attempt which lost its claim writes nothing.
"""

import logging
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.conf import settings
from django.db import connection, models, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from apps.core.database.outage import is_outage, renew_connections
from apps.core.jobs import broker, shutdown
from apps.core.logs import context
from apps.core.registries import Registry

log = logging.getLogger(__name__)

MOST_LOST = 5  # a job that ends its worker every time must not do so forever
NUDGES = 8  # for each kind of job at a time: that many workers may be idle
NUDGE_EXPIRES = 300  # seconds: those that pile up behind a long job are dropped unread


class JobState(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Job(models.Model):
    """One piece of long work. Concrete jobs add what it is about."""

    State = JobState
    state = models.CharField(max_length=10, choices=JobState, default=JobState.QUEUED)
    attempt = models.PositiveIntegerField(default=0)
    # Attempts whose worker fell silent, since it was queued.
    lost = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    heartbeat_at = models.DateTimeField(null=True)
    cancel_requested = models.BooleanField(default=False)
    progress = models.JSONField(default=dict)  # {"done": n, "total": n or null, "note": str}
    error = models.TextField(default="")  # shown to the user

    class Meta:
        abstract = True

    @property
    def is_finished(self) -> bool:
        return self.state in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


JobT = TypeVar("JobT", bound=Job)


class ClaimLost(Exception):
    """Another attempt holds the job now; this one must stop without writing anything."""


def waits_since(moment: datetime) -> Q:
    """Queued rows that no worker took up since `moment`."""
    return Q(created_at__lt=moment)


@dataclass(frozen=True)
class JobType:
    model: type[Job]
    task: str
    ended: Callable[[Any], object] | None
    among: Q
    waits_since: Callable[[datetime], Q] = waits_since
    nudges: int = NUDGES

    def claimable(self) -> models.QuerySet[Job]:
        """Rows that a worker may claim now."""
        return self.model._default_manager.filter(self.among).filter(eligible())


JOB_TYPES: Registry[JobType] = Registry()
# Called with every job that comes to its end, in the transaction that ends it.
ENDED_LISTENERS: Registry[Callable[[Job], object]] = Registry()


def orphaned_after() -> timedelta:
    """Silence after which a job's worker counts as lost; by the database's clock, which all machines share."""
    return timedelta(seconds=settings.JOB_SILENCE_SECONDS)


def heartbeat_seconds() -> float:
    return min(5.0, settings.JOB_SILENCE_SECONDS / 6)


def register(
    model: type[JobT],
    task: str,
    ended: Callable[[JobT], object] | None = None,
    *,
    among: Q | None = None,
    waits_since: Callable[[datetime], Q] = waits_since,
    nudges: int = NUDGES,
) -> None:
    """Have beat nudge `task` for as long as `model` has eligible rows. Called in AppConfig.register.

    ended: called once for each row that comes to its end, in the transaction that ends it. among: the rows that are
    this task's, where a model has several tasks or not all rows may be claimed; `ended` is given with one of several.
    waits_since: which queued rows `doctor` reports. nudges: at most so many each time.
    """
    JOB_TYPES.add(JobType(model, task, ended, among or Q(), waits_since, nudges))


def nudge_on_commit(task: str) -> None:
    """Send `task` once the transaction is committed. A lost nudge costs seconds: beat sends another."""
    transaction.on_commit(lambda: nudge(task), robust=True)


def nudge(task: str) -> None:
    broker.celery().send_task(task, retry=False, expires=NUDGE_EXPIRES)


def eligible() -> Q:
    """Rows a worker may claim: queued ones, and running ones whose worker fell silent."""
    return Q(state=JobState.QUEUED) | Q(state=JobState.RUNNING, heartbeat_at__lt=Now() - orphaned_after())


@transaction.atomic
def claim_next(model: type[JobT], among: Q | None = None) -> JobT | None:
    """Claim the oldest eligible row, or None. Its attempt number is the fence for everything it writes.

    An orphan that was to be cancelled ends here, and one whose workers were lost MOST_LOST times.
    """
    rows = model._default_manager.select_for_update(skip_locked=True, of=("self",))
    rows = rows.filter(eligible(), among or Q())
    while (job := rows.order_by("created_at", "pk").first()) is not None:
        job.lost += job.state == JobState.RUNNING
        if job.cancel_requested:
            job.state = JobState.CANCELLED
        elif job.lost >= MOST_LOST:
            job.state = JobState.FAILED
            job.error = (
                f"Its worker was lost {job.lost} times in a row, so it is not retried automatically: check the "
                "worker's memory and log, then start it again."
            )
        else:
            job.state, job.attempt = JobState.RUNNING, job.attempt + 1
            job.started_at = job.started_at or timezone.now()
            job.heartbeat_at = Now()
            job.save(update_fields=["state", "attempt", "lost", "started_at", "heartbeat_at"])
            job.refresh_from_db(fields=["heartbeat_at"])
            return job
        job.finished_at = timezone.now()
        job.save(update_fields=["state", "error", "lost", "finished_at"])
        _notify_finished(job)
    return None


def renew_heartbeat(job: Job, **changes: object) -> bool:
    """Renew the heartbeat and write `changes`. Returns whether a cancel was asked for. Raises ClaimLost."""
    rows = type(job)._default_manager.filter(pk=job.pk, attempt=job.attempt, state=JobState.RUNNING)
    if not rows.update(heartbeat_at=Now(), **changes):
        raise ClaimLost(f"{job} is no longer attempt {job.attempt}'s")
    return rows.filter(cancel_requested=True).exists()


class Cancelled(Exception):
    """Someone asked for the job to be cancelled; finish it as CANCELLED."""


class Interrupted(Exception):
    """This worker is stopping: give the job back with `release`, for the next one to go on with."""


@dataclass
class JobHeartbeat:
    """The heartbeat of a job that works in this process. progress: written with the next beat."""

    progress: dict[str, Any] = field(default_factory=dict)
    lost: threading.Event = field(default_factory=threading.Event)
    cancelled: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Call it now and then. Raises ClaimLost, Cancelled or Interrupted."""
        if self.lost.is_set():
            raise ClaimLost("another attempt holds this job now")
        if self.cancelled.is_set():
            raise Cancelled
        if shutdown.is_asked():
            raise Interrupted


@contextmanager
def keep_heartbeat(job: Job) -> Iterator[JobHeartbeat]:
    """Renew the job's heartbeat from a thread, on a separate connection, while the block runs."""
    result, stop = JobHeartbeat(), threading.Event()
    thread = threading.Thread(
        target=_keep_beating, args=(job, result, stop), name=f"heartbeat of {job}", daemon=True
    )
    thread.start()
    try:
        yield result
    finally:
        stop.set()
        thread.join()


def _keep_beating(job: Job, result: JobHeartbeat, stop: threading.Event) -> None:
    try:
        while not stop.wait(heartbeat_seconds()):
            try:
                if renew_heartbeat(job, **({"progress": result.progress} if result.progress else {})):
                    result.cancelled.set()
            except ClaimLost:
                result.lost.set()
                return
            except Exception as error:
                if not is_outage(error):
                    raise
                log.warning("the heartbeat of %s did not reach the database; it tries again: %s", job, error)
                connection.close()
    finally:
        connection.close()


@contextmanager
def fenced(job: JobT) -> Iterator[JobT]:
    """A transaction in which `job` is locked and still this attempt's. Raises ClaimLost."""
    with transaction.atomic():
        rows = type(job)._default_manager.select_for_update(of=("self",))
        if not rows.filter(pk=job.pk, attempt=job.attempt, state=JobState.RUNNING).exists():
            raise ClaimLost(f"{job} is no longer attempt {job.attempt}'s")
        yield job


def finish(job: Job, state: JobState, *, error: str = "", **changes: object) -> None:
    """Move a claimed job to its end, once. Raises ClaimLost when another attempt took it."""
    _leave(job, state=state, error=error, finished_at=timezone.now(), **changes)


def release(job: Job) -> None:
    """Put a claimed job back in its place in the queue: its worker is stopping. Raises ClaimLost."""
    _leave(job, state=JobState.QUEUED, heartbeat_at=None)


@transaction.atomic
def _leave(job: Job, **changes: object) -> None:
    rows = type(job)._default_manager.filter(pk=job.pk, attempt=job.attempt, state=JobState.RUNNING)
    if not rows.update(**changes):
        raise ClaimLost(f"{job} is no longer attempt {job.attempt}'s")
    job.refresh_from_db()
    if job.is_finished:
        _notify_finished(job)


def _notify_finished(job: Job) -> None:
    for listener in ENDED_LISTENERS:
        listener(job)
    for job_type in JOB_TYPES:
        if job_type.model is type(job) and job_type.ended is not None:
            job_type.ended(job)


@transaction.atomic
def request_cancel(job: Job) -> None:
    """Cancel through the row: a queued job ends here, a running one is told at its next heartbeat."""
    rows = type(job)._default_manager.filter(pk=job.pk)
    ended = rows.filter(state=JobState.QUEUED).update(state=JobState.CANCELLED, finished_at=timezone.now())
    rows.filter(state=JobState.RUNNING).update(cancel_requested=True)
    job.refresh_from_db()
    if ended:
        _notify_finished(job)


def requeue(job: Job, *, even_done: bool = False) -> None:
    """Put a failed or cancelled job back at the end of the queue; it resumes from what it kept.

    even_done: one that succeeded too, which has more to do since.
    """
    states = [JobState.FAILED, JobState.CANCELLED, *([JobState.SUCCEEDED] if even_done else [])]
    rows = type(job)._default_manager.filter(pk=job.pk, state__in=states)
    rows.update(state=JobState.QUEUED, lost=0, cancel_requested=False, error="", finished_at=None)
    job.refresh_from_db()


def drain_queue(model: type[JobT], execute: Callable[[JobT], object], among: Q | None = None) -> None:
    """What a worker does when nudged: claim and execute the rows of `model` until none waits or it is to stop."""
    try:
        while not shutdown.is_asked() and (job := claim_next(model, among)) is not None:
            with context(job=f"{model._meta.model_name}-{job.pk}.{job.attempt}"):
                work(job, execute)
    except Exception as error:
        if not is_outage(error):
            raise
        # What waits is nudged again while it waits; what was begun is taken up when its heartbeat is stale.
        log.warning("the database is away or takes no changes; jobs wait: %s", error)
        renew_connections(error)


def work(job: JobT, execute: Callable[[JobT], object]) -> None:
    """Execute a claimed job. Whatever happens its row says so, or is tried again."""
    try:
        execute(job)
    except ClaimLost:
        log.warning("%s went to another worker; nothing of it was written here", job)
    except Interrupted:
        log.info("%s is given back: this worker stops", job)
        release(job)
    except Exception as error:
        if is_outage(error):
            raise  # the row keeps its claim until its heartbeat is stale; then it is taken up again
        # A bug must not leave the row to be tried forever; the log has the traceback.
        reference = secrets.token_hex(4)
        log.exception("%s failed, reference %s", job, reference)
        sentence = f"Something went wrong on our side; the log has it under {reference}."
        finish(job, JobState.FAILED, error=sentence)
