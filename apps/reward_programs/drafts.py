"""A language model's draft of a reward program: a child process of the core writes it, and it is stored as a version
that a person has to accept."""

import json
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from apps.core.errors import DomainError
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import JobHeartbeat
from apps.core.processes import core_subprocess
from apps.llm.child_access import LLMAccess, open_llm_access
from apps.llm.models import SpendingPurpose
from apps.reward_programs.models import RewardProgramJob
from apps.reward_programs.selectors import get_reward_program, sampled_keys
from apps.reward_programs.services import DraftOptions, create_reward_program
from apps.reward_programs.stored_comments import StoredComment, stored_comments
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.masking import mask_trajectory
from apps.trajectories.selectors import stream_trajectories
from apps.trajectories.services import detectors_of
from workers import schema

CHILD = "workers.programs"
TRIED = 30  # trajectories that each draft is tried on


def draft(job: RewardProgramJob, heartbeat: JobHeartbeat) -> dict[str, Any]:
    """The result of the job; its version is stored. Raises DomainError, ClaimLost, Cancelled."""
    options = msgspec.convert(job.options, DraftOptions)
    if job.llm_connection is None:
        raise DomainError("The LLM connection was deleted. Start the draft with another one.")
    heartbeat.progress = {"done": 0, "total": None, "note": f"Asking {job.llm_connection}"}
    detectors = detectors_of(job.project)
    stored = _stored_comments(job, options, detectors)
    keys = sampled_keys(job, options.filter, TRIED)
    if not keys:
        raise DomainError("No trajectory passes the filter, so no draft can be tried. Change it.")
    commented = list(dict.fromkeys(comment.trajectory for comment in stored))[: TRIED // 2]
    keys = list(dict.fromkeys([*commented, *keys]))[:TRIED]
    revised = None if options.revises is None else get_reward_program(job.project, options.revises)
    typed = [line.strip() for line in options.comments.splitlines() if line.strip()]
    config = {
        "task": options.task,
        "comments": typed + [comment.line for comment in stored],
        "code": None if revised is None else revised.code,
        "excerpts": options.excerpts,
    }
    with tempfile.TemporaryDirectory(prefix="draft-") as scratch:
        folder = Path(scratch)
        tried = stream_trajectories(keys, check=heartbeat.check)
        schema.write_trajectories(
            folder / "trajectories.jsonl.zst", (mask_trajectory(each, detectors)[0] for each in tried)
        )
        with open_llm_access(job.llm_connection, folder, SpendingPurpose.PROGRAMS) as access:
            _run_child(folder, config, access, heartbeat)
        result: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    code = result.pop("code")
    result["stored_comments"] = len(stored)
    with job_queue.fenced(job):
        job.program = create_reward_program(
            project=job.project,
            name=job.name,
            code=code,
            note=options.task[:200],
            by=job.created_by,
            is_draft=True,
        )
        job.save(update_fields=["program"])
    return result


def _stored_comments(
    job: RewardProgramJob, options: DraftOptions, detectors: tuple[str, ...]
) -> list[StoredComment]:
    if not options.stored_comments:
        return []
    found = stored_comments(job.project, filter_trajectories(job.project, options.filter), detectors)
    if not found:
        raise DomainError(
            "No trajectory that passes the filter has a comment. Change the filter, or leave stored comments out."
        )
    return found


def _run_child(folder: Path, config: dict[str, Any], access: LLMAccess, heartbeat: JobHeartbeat) -> None:
    (folder / "config.json").write_text(json.dumps(config | {"server": access.server}), encoding="utf-8")

    def check() -> None:
        heartbeat.check()
        access.store_new_completions()

    core_subprocess.run_to_end(
        CHILD, [str(folder)], folder=folder, what="The draft", check=check, given=access.environment
    )
