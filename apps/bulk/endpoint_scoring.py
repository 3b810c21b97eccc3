"""Chunks of a bulk job that an endpoint scores: requests to the reward service, by the revision of the job."""

import time
from typing import Any

from django.db import IntegrityError
from touchstone_client import Refused, RewardServiceError

from apps.bulk.chunks import claim_chunk, give_back_chunk, store_rows
from apps.bulk.models import BulkChunk, BulkJob
from apps.bulk.turns import WorkerTurn
from apps.core.database.outage import is_outage
from apps.core.errors import DomainError
from apps.core.jobs.job_queue import ClaimLost, Interrupted, JobHeartbeat, keep_heartbeat
from apps.rewards import remote
from apps.trajectories.models import Trajectory

_AT_ONCE = 32  # trajectories of one request
_ITEM_FAULT = "/inputs/"  # how the pointer of an error begins that is about one trajectory
ResultRow = tuple[Any, ...]


def score_chunks(job: BulkJob, turn: WorkerTurn) -> None:
    """Until none waits or the turn is over. Raises DomainError where the endpoint cannot score."""
    while not turn.is_over() and (chunk := claim_chunk(job)) is not None:
        try:
            with keep_heartbeat(chunk) as heartbeat:
                _score_chunk(job, chunk, heartbeat)
        except ClaimLost:
            continue
        except IntegrityError:  # a trajectory was deleted while it was scored
            give_back_chunk(chunk, lost=True)
        except Interrupted:
            give_back_chunk(chunk, lost=False)
            return
        except RewardServiceError as error:
            give_back_chunk(chunk, lost=False)
            raise DomainError(
                f"The endpoint {job.engine} cannot score: {error} Then resume the job."
            ) from error
        except Exception as error:
            if not is_outage(error):
                give_back_chunk(chunk, lost=False)
            raise


def _score_chunk(job: BulkJob, chunk: BulkChunk, heartbeat: JobHeartbeat) -> None:
    began = time.monotonic()
    there = Trajectory.objects.filter(pk__in=chunk.trajectory_ids).order_by("pk")
    keys = list(there.values_list("pk", flat=True))
    rows: list[ResultRow] = []
    tokens = 0
    for start in range(0, len(keys), _AT_ONCE):
        heartbeat.check()
        scored, read = _score_batch(job, keys[start : start + _AT_ONCE])
        rows += scored
        tokens += read
    store_rows(chunk, rows, tokens=tokens, seconds=time.monotonic() - began)


def _score_batch(job: BulkJob, keys: list[int]) -> tuple[list[ResultRow], int]:
    """Rows of results, and the tokens that were read. Where one trajectory is refused, the others are scored without
    it."""
    revision = job.revision
    assert revision is not None
    body = {
        "inputs": [{"trajectory_id": str(key)} for key in keys],
        "steps": job.with_steps,
        "version": revision.number,
    }
    try:
        reply = remote.ask(revision.endpoint, "score", body)
    except Refused as error:
        pointer = str((error.problem or {}).get("pointer") or "")
        if not pointer.startswith(_ITEM_FAULT):
            raise
        if len(keys) == 1:
            return [(keys[0], None, None, 0, False, None, None, None, str(error))], 0
        half = len(keys) // 2
        (first, read), (second, read_too) = _score_batch(job, keys[:half]), _score_batch(job, keys[half:])
        return first + second, read + read_too
    rows = [_result_row(key, result) for key, result in zip(keys, reply["results"], strict=True)]
    return rows, int(reply["usage"]["tokens"])


def _result_row(key: int, result: dict[str, Any]) -> ResultRow:
    steps = result.get("steps")
    rewards = None if steps is None else [step["reward"] for step in steps]
    is_cut = "truncated" in result.get("flags", ())
    return key, result["reward"], result.get("std"), 0, is_cut, rewards, None, None, ""
