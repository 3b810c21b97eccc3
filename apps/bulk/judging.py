"""Chunks of a bulk job that a judge scores: a child process of the core for each."""

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.db import IntegrityError

from apps.bulk.chunks import claim_chunk, give_back_chunk, store_rows
from apps.bulk.models import BulkChunk, BulkJob
from apps.bulk.turns import WorkerTurn
from apps.core.database.outage import is_outage
from apps.core.errors import DomainError
from apps.core.jobs.job_queue import ClaimLost, Interrupted, JobHeartbeat, keep_heartbeat
from apps.core.processes import core_subprocess
from apps.judges.executor import CHILD, judge_child_config, write_judged
from apps.judges.models import Judge
from apps.llm.child_access import LLMAccess, open_llm_access, write_json_lines
from apps.llm.models import SpendingPurpose
from apps.rubrics.models import Criterion
from apps.trajectories.selectors import stream_trajectories


class _JobCancelled(Exception):
    pass


def judge_chunks(job: BulkJob, turn: WorkerTurn) -> None:
    """Until none waits or the turn is over. Answers of a chunk that is interrupted are cached, and are not paid for
    twice. Raises DomainError where the judge cannot go on."""
    while not turn.is_over() and (chunk := claim_chunk(job)) is not None:
        try:
            with keep_heartbeat(chunk) as heartbeat:
                _judge_chunk(job, chunk, heartbeat)
        except ClaimLost:
            continue
        except IntegrityError:  # a trajectory was deleted while it was judged
            give_back_chunk(chunk, lost=True)
        except (Interrupted, _JobCancelled):
            give_back_chunk(chunk, lost=False)
            return
        except Exception as error:
            if not is_outage(error):
                give_back_chunk(chunk, lost=False)
            raise


def _judge_chunk(job: BulkJob, chunk: BulkChunk, heartbeat: JobHeartbeat) -> None:
    judge = job.judge
    assert judge is not None
    if judge.llm_connection is None:
        raise DomainError(
            f"The LLM connection of {judge} was deleted. Create a judge with another connection."
        )
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bulk-judge-") as scratch:
        folder = Path(scratch)
        trajectories = list(stream_trajectories(chunk.trajectory_ids, check=heartbeat.check))
        write_judged(folder, judge, trajectories, heartbeat.check)
        units = [{"unit": int(found.id or 0), "runs": [found.id]} for found in trajectories]
        write_json_lines(folder / "units.jsonl", units)
        (folder / "judged.jsonl").touch()
        access = open_llm_access(
            judge.llm_connection, folder, SpendingPurpose.JUDGE_RUNS, trajectories=chunk.trajectory_ids
        )
        with access as opened:
            config = judge_child_config(judge, judge.prompt, opened.server)
            (folder / "config.json").write_text(json.dumps(config))
            _run_child(job, folder, opened, heartbeat)
        usage = json.loads((folder / "result.json").read_text(encoding="utf-8"))["usage"]
        rows = list(_result_rows(judge, folder / "judged.jsonl"))
    tokens = usage["prompt_tokens"] + usage["completion_tokens"]
    store_rows(chunk, rows, tokens=tokens, seconds=time.monotonic() - began)


def _run_child(job: BulkJob, folder: Path, access: LLMAccess, heartbeat: JobHeartbeat) -> None:
    def check() -> None:
        heartbeat.check()
        access.store_new_completions()
        if BulkJob.objects.filter(pk=job.pk, state=BulkJob.State.CANCELLED).exists():
            raise _JobCancelled

    core_subprocess.run_to_end(
        CHILD, [str(folder)], folder=folder, what="The bulk job", check=check, given=access.environment
    )


def _result_rows(judge: Judge, path: Path) -> Iterator[tuple[Any, ...]]:
    """reward: the mean over the criteria of scores from 0 to 1; None where the judge decided none."""
    criteria = [criterion for criterion in judge.criteria if criterion is not None]
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            found = json.loads(line)
            answer, problem = found.get("answer"), found.get("problem", "")
            reward = None if answer is None else mean_score(criteria, answer)
            yield found["unit"], reward, None, 0, False, None, None, answer, problem


def mean_score(criteria: list[Criterion], answer: list[dict[str, Any]]) -> float | None:
    scores = [
        (given["value"] - criterion.scale_low) / (criterion.scale_high - criterion.scale_low)
        for criterion, given in zip(criteria, answer, strict=True)
        if given["value"] is not None
    ]
    return sum(scores) / len(scores) if scores else None
