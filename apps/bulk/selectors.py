"""Shared reads of bulk jobs."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Count, Exists, F, Min, OuterRef, Q, QuerySet, Sum
from django.utils import timezone

from apps.accounts.models import Project
from apps.bulk.models import BulkChunk, BulkJob
from apps.core.errors import NotFound
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import JobState

_RECENT = timedelta(seconds=60)

_TRAJECTORIES = """
    SELECT json_agg(json_build_object(
        'id', trajectory.id::text,
        'task', json_build_object(
            'id', task.external_id,
            'instruction', task.instruction,
            'reference', task.reference,
            'metadata', task.metadata
        ),
        'agent', trajectory.agent_name,
        'agent_version', trajectory.agent_version,
        'reward', trajectory.outcome_reward,
        'success', trajectory.success,
        'metadata', trajectory.metadata,
        'steps', steps.steps
    ) ORDER BY trajectory.id)::text
    FROM trajectories_trajectory AS trajectory
    JOIN trajectories_task AS task ON task.id = trajectory.task_id
    CROSS JOIN LATERAL (
        SELECT json_agg(json_build_object(
            'source', source,
            'speaker', speaker,
            'message', message,
            'reasoning', reasoning,
            'tool_calls', tool_calls,
            'observation', observation,
            'features', features,
            'reward', reward,
            'metrics', metrics,
            'extra', extra
        ) ORDER BY index) AS steps
        FROM trajectories_step WHERE trajectory_id = trajectory.id
    ) AS steps
    WHERE trajectory.id = ANY(%s)
"""


def of_active_jobs() -> Q:
    return Q(bulk_job__state=BulkJob.State.RUNNING)


def unserved_since(moment: datetime) -> Q:
    """Chunks of jobs that no worker works on."""
    return Q(bulk_job__created_at__lt=moment) & (
        Q(bulk_job__served_at=None) | Q(bulk_job__served_at__lt=moment)
    )


def next_bulk_job() -> BulkJob | None:
    """The active job with chunks to claim that was served longest ago."""
    waiting = BulkChunk.objects.filter(job_queue.eligible(), bulk_job=OuterRef("pk"))
    jobs = BulkJob.objects.filter(Exists(waiting), state=BulkJob.State.RUNNING)
    jobs = jobs.select_related(
        "model__project",
        "judge__llm_connection",
        "induction__project",
        "project",
        "revision__endpoint__project",
    )
    return jobs.order_by(F("served_at").asc(nulls_first=True), "pk").first()


def trajectories_as_json(ids: list[int]) -> bytes:
    """A JSON array of these trajectories in the order of their keys, as `load_trajectories` gives them.

    The database writes it: a worker passes on bytes, and never decodes them. Those that were deleted are left out.
    """
    with connection.cursor() as cursor:
        cursor.execute(_TRAJECTORIES, [ids])
        (text,) = cursor.fetchone() or (None,)
    return b"[]" if text is None else text.encode()


@dataclass(frozen=True, slots=True)
class BulkProgress:
    """done: items with a result, problems among them, or deleted meanwhile. per_second, tokens_per_second: of all
    workers over the last minute. seconds_left: at that rate, None where nothing was done lately."""

    done: int
    total: int
    problems: int
    missing: int
    tokens: int
    failed_chunks: int
    running_chunks: int
    per_second: float
    tokens_per_second: float
    seconds_left: float | None


def job_progress(job: BulkJob) -> BulkProgress:
    return job_progresses([job])[job.pk]


def job_progresses(jobs: Collection[BulkJob]) -> dict[int, BulkProgress]:
    """Of the chunks of each job, by key of the job, in one query."""
    now = timezone.now()
    sums = _chunk_sums(jobs, now)
    return {job.pk: _progress(job, sums.get(job.pk), now) for job in jobs}


def _chunk_sums(jobs: Collection[BulkJob], now: datetime) -> dict[int, dict[str, Any]]:
    """By key of the job; a job without chunks has none."""
    ended = Q(state=JobState.SUCCEEDED)
    late = ended & Q(finished_at__gt=now - _RECENT)
    chunks = BulkChunk.objects.filter(bulk_job__in=[job.pk for job in jobs]).order_by()
    found = chunks.values("bulk_job").annotate(
        done_items=Sum("item_count", filter=ended, default=0),
        problem_items=Sum("problems", filter=ended, default=0),
        missing_items=Sum("missing", filter=ended, default=0),
        read_tokens=Sum("tokens", filter=ended, default=0),
        failed=Count("pk", filter=Q(state=JobState.FAILED)),
        running=Count("pk", filter=Q(state=JobState.RUNNING)),
        late_items=Sum("item_count", filter=late, default=0),
        late_tokens=Sum("tokens", filter=late, default=0),
        begun=Min("started_at"),
    )
    return {row["bulk_job"]: dict(row) for row in found}


_NO_CHUNKS = dict.fromkeys(
    (
        *("done_items", "problem_items", "missing_items", "read_tokens"),
        *("failed", "running", "late_items", "late_tokens"),
    ),
    0,
) | {"begun": None}


def _progress(job: BulkJob, sums: dict[str, Any] | None, now: datetime) -> BulkProgress:
    found: dict[str, Any] = sums or _NO_CHUNKS
    begun, done = found["begun"], found["done_items"]
    if begun is None:
        seconds, items, tokens = 0.0, 0, 0
    elif job.is_finished:  # the mean over the whole job
        seconds = ((job.finished_at or now) - begun).total_seconds()
        items, tokens = done, found["read_tokens"]
    else:
        seconds = min(_RECENT.total_seconds(), (now - begun).total_seconds())
        items, tokens = found["late_items"], found["late_tokens"]
    rate = items / seconds if seconds > 0 else 0.0
    return BulkProgress(
        done=done,
        total=job.item_count,
        problems=found["problem_items"],
        missing=found["missing_items"],
        tokens=found["read_tokens"],
        failed_chunks=found["failed"],
        running_chunks=found["running"],
        per_second=rate,
        tokens_per_second=tokens / seconds if seconds > 0 else 0.0,
        seconds_left=(job.item_count - done) / rate if rate and not job.is_finished else None,
    )


def list_bulk_jobs(project: Project) -> QuerySet[BulkJob]:
    """Newest first."""
    rows = BulkJob.objects.filter(project=project)
    return rows.select_related(
        "project", "model__project", "judge", "induction", "created_by", "revision__endpoint"
    )


def get_bulk_job(project: Project, pk: int) -> BulkJob:
    """Raises NotFound."""
    job = list_bulk_jobs(project).filter(pk=pk).first()
    if job is None:
        raise NotFound(f"There is no bulk job {pk} in this project.")
    return job
