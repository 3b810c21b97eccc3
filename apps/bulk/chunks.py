"""Chunks are claimed, stored, split and given back here, each by the worker that holds it."""

import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import Q
from django.db.models.functions import Now

from apps.bulk.models import BulkChunk, BulkJob, BulkResult
from apps.bulk.selectors import of_active_jobs
from apps.core.database.outage import is_outage
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import ClaimLost, JobState
from apps.semantic_search.services import store_passages
from workers.schema.bulk_items import BulkItem
from workers.schema.decode import clean

log = logging.getLogger(__name__)
_SUSPECT = 2  # times that a chunk's process was lost, after which it is split
_ENDS_ITS_PROCESS = (
    "The process that computed it ended each time; the worker's log says how. It may need more memory."
)
_COLUMNS = "bulk_job_id, trajectory_id, reward, std, tokens, truncated, steps, embedding, answer, problem"


def claim_chunk(job: BulkJob) -> BulkChunk | None:
    """The next one of an active job. A chunk whose process was lost twice is split first, down to the item that ends
    its processes, which gets a problem."""
    among = Q(bulk_job=job.pk) & of_active_jobs()
    while (chunk := job_queue.claim_next(BulkChunk, among)) is not None:
        if chunk.lost < _SUSPECT:
            return chunk
        with suppress(ClaimLost):
            if len(chunk.trajectory_ids) > 1:
                _split_chunk(chunk)
            else:
                _store_suspect(chunk)
    return None


def _store_suspect(chunk: BulkChunk) -> None:
    """End a chunk of one item with a problem, or with nothing where its trajectory is gone. Raises ClaimLost."""
    (key,) = chunk.trajectory_ids
    try:
        store_chunk(chunk, [BulkItem(trajectory=key, problem=_ENDS_ITS_PROCESS)], seconds=0.0)
    except IntegrityError:
        store_chunk(chunk, [], seconds=0.0)


def store_chunk(chunk: BulkChunk, items: Sequence[BulkItem], *, seconds: float) -> None:
    """Results and the end of a chunk in one transaction. Raises ClaimLost, and IntegrityError where a trajectory is
    gone; then nothing is written."""
    if chunk.bulk_job.work == BulkJob.Work.INDEX:
        _store_passages(chunk, items, seconds=seconds)
        return
    store_rows(
        chunk,
        [
            (
                item.trajectory,
                item.reward,
                item.std,
                item.tokens,
                item.truncated,
                item.steps,
                item.embedding,
                item.verdicts,
                item.problem,
            )
            for item in items
        ],
        tokens=sum(item.tokens for item in items),
        seconds=seconds,
    )


def store_rows(chunk: BulkChunk, rows: Sequence[tuple[Any, ...]], *, tokens: int, seconds: float) -> None:
    """The same of rows: of _COLUMNS without the job. NUL and lone surrogates are replaced."""
    with job_queue.fenced(chunk):
        with (
            connection.cursor() as cursor,
            cursor.copy(f"COPY bulk_bulkresult ({_COLUMNS}) FROM STDIN") as copy,
        ):
            for *values, answer, problem in rows:
                encoded = None if answer is None else json.dumps(clean(answer)[0])
                copy.write_row((chunk.bulk_job_id, *values, encoded, clean(problem)[0]))
        job_queue.finish(
            chunk,
            JobState.SUCCEEDED,
            missing=chunk.item_count - len(rows),
            problems=sum(bool(row[-1]) for row in rows),
            tokens=tokens,
            seconds=seconds,
        )


def _store_passages(chunk: BulkChunk, items: Sequence[BulkItem], *, seconds: float) -> None:
    """Of the work INDEX: no rows of results, but for problems."""
    with job_queue.fenced(chunk):
        store_passages(
            chunk.bulk_job.project,
            [(item.trajectory, item.passages) for item in items if item.passages is not None],
        )
        BulkResult.objects.bulk_create(
            BulkResult(bulk_job_id=chunk.bulk_job_id, trajectory_id=item.trajectory, problem=item.problem)
            for item in items
            if item.problem
        )
        job_queue.finish(
            chunk,
            JobState.SUCCEEDED,
            missing=chunk.item_count - len(items),
            problems=sum(bool(item.problem) for item in items),
            seconds=seconds,
        )


def give_back_chunk(chunk: BulkChunk, *, lost: bool) -> None:
    """Put a claimed chunk back in the queue. lost: the process that computed it has ended."""
    rows = BulkChunk.objects.filter(pk=chunk.pk, attempt=chunk.attempt, state=JobState.RUNNING)
    rows.update(state=JobState.QUEUED, heartbeat_at=None, lost=chunk.lost + lost)


def renew_chunks(chunks: Sequence[BulkChunk]) -> None:
    """The heartbeats of chunks that this worker holds. One that went to another worker is left to it."""
    try:
        for chunk in chunks:
            rows = BulkChunk.objects.filter(pk=chunk.pk, attempt=chunk.attempt, state=JobState.RUNNING)
            rows.update(heartbeat_at=Now())
    except Exception as error:
        if not is_outage(error):
            raise
        log.warning("heartbeats of chunks did not reach the database; they are tried again: %s", error)
        connection.close()


@transaction.atomic
def _split_chunk(chunk: BulkChunk) -> None:
    """Put its halves in its place: what ends its processes is found, and the rest is done."""
    with job_queue.fenced(chunk):
        half = len(chunk.trajectory_ids) // 2
        BulkChunk.objects.bulk_create(
            BulkChunk(
                bulk_job_id=chunk.bulk_job_id,
                trajectory_ids=part,
                item_count=len(part),
                lost=_SUSPECT - 1,
                created_at=chunk.created_at,
            )
            for part in (chunk.trajectory_ids[:half], chunk.trajectory_ids[half:])
        )
        chunk.delete()
