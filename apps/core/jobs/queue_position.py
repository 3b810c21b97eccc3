"""Where a queued job stands: how many jobs the same workers do first, and how long these took lately."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Count, Max, Q
from django.db.models.functions import Now
from django.utils import timezone

from apps.core.jobs import broker
from apps.core.jobs.job_queue import JOB_TYPES, Job, JobState, JobType
from apps.core.models import Service

RECENT_JOBS = 20  # whose durations the estimate takes
_WORKER_SILENCE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """place: 1 is the next one. running: jobs that workers do now. minutes: until it starts, where that is known."""

    place: int
    running: int
    minutes: float | None

    @property
    def words(self) -> str:
        parts = ["next in the queue" if self.place == 1 else f"{ordinal(self.place)} in the queue"]
        if self.running:
            parts.append(f"{self.running} running" if self.place > 1 else f"behind {self.running} running")
        if self.minutes is not None:
            parts.append("starts in about a minute" if self.minutes <= 1 else f"about {self.minutes:.0f} min")
        return ", ".join(parts)


def ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def queue_position(job: Job) -> QueuePosition | None:
    """None for a job that is not queued, or whose kind no worker does."""
    own = next((each for each in JOB_TYPES if each.model is type(job)), None)
    if own is None or job.state != JobState.QUEUED:
        return None
    queue = _queue_of(own.task)
    ahead, running, seconds = 0, 0, 0.0
    is_known = True
    for job_type in JOB_TYPES:
        if _queue_of(job_type.task) != queue:
            continue
        found = _jobs_before(job_type, job)
        ahead, running = ahead + found["queued"], running + found["running"]
        if not found["queued"] + found["running"]:
            continue
        mean = _mean_seconds(job_type.model)
        if mean is None:
            is_known = False
            continue
        started = found["last_start"]
        done = (timezone.now() - started).total_seconds() if started else 0.0
        seconds += mean * found["queued"] + max(0.0, mean - done) * found["running"]
    is_known = is_known and ahead + running > 0
    return QueuePosition(ahead + 1, running, seconds / _workers(queue) / 60 if is_known else None)


def _jobs_before(job_type: JobType, job: Job) -> dict[str, Any]:
    older = Q(created_at__lt=job.created_at)
    if job_type.model is type(job):
        older |= Q(created_at=job.created_at, pk__lt=job.pk)
    rows = job_type.model._default_manager.filter(job_type.among)
    rows = rows.filter(state__in=[JobState.QUEUED, JobState.RUNNING])
    return rows.aggregate(
        queued=Count("pk", filter=Q(state=JobState.QUEUED) & older),
        running=Count("pk", filter=Q(state=JobState.RUNNING)),
        last_start=Max("started_at", filter=Q(state=JobState.RUNNING)),
    )


def _mean_seconds(model: type[Job]) -> float | None:
    """Of the newest jobs that succeeded."""
    done = model._default_manager.filter(
        state=JobState.SUCCEEDED, started_at__isnull=False, finished_at__isnull=False
    )
    times: Iterable[tuple[Any, Any]] = done.order_by("-pk").values_list("started_at", "finished_at")[
        :RECENT_JOBS
    ]
    durations = [(finished - started).total_seconds() for started, finished in times]
    return sum(durations) / len(durations) if durations else None


def _queue_of(task: str) -> str:
    route = broker.celery().amqp.router.route({}, task)
    queue = route.get("queue")
    return str(getattr(queue, "name", queue))


def _workers(queue: str) -> int:
    alive = Service.objects.filter(name=queue, seen_at__gt=Now() - _WORKER_SILENCE)
    return max(1, alive.count())
