"""Has subgoals proposed: child processes of the core, each on a folder with some of the tasks."""

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from apps.core.errors import DomainError
from apps.core.jobs.job_queue import Cancelled, JobHeartbeat, JobState, finish, keep_heartbeat
from apps.core.processes import core_subprocess
from apps.llm.child_access import JsonLinesTail, LLMAccess, open_llm_access, write_json_lines
from apps.llm.models import SpendingPurpose
from apps.subgoals.models import SubgoalProposal
from apps.subgoals.services import ProposalOptions, store_proposed
from apps.trajectories.masking import mask_text, mask_trajectory
from apps.trajectories.models import Task, Trajectory
from apps.trajectories.selectors import stream_trajectories
from apps.trajectories.services import detectors_of
from workers import schema
from workers.subgoals.pipeline import MOST_RUNS

CHILD = "workers.subgoals"
BATCH = 100  # tasks of a child, which holds their trajectories in memory


def execute(proposal: SubgoalProposal) -> None:
    """Raises ClaimLost, Interrupted."""
    with keep_heartbeat(proposal) as heartbeat:
        try:
            for start in range(0, len(proposal.tasks), BATCH):
                heartbeat.progress = {
                    "done": start,
                    "total": len(proposal.tasks),
                    "note": "Asking for subgoals",
                }
                heartbeat.check()
                _propose(proposal, proposal.tasks[start : start + BATCH], heartbeat)
            finish(proposal, JobState.SUCCEEDED, progress={}, result=proposal.result)
        except DomainError as error:
            finish(proposal, JobState.FAILED, error=error.message, result=proposal.result)
        except Cancelled:
            finish(proposal, JobState.CANCELLED, result=proposal.result)


def _propose(proposal: SubgoalProposal, tasks: list[int], heartbeat: JobHeartbeat) -> None:
    if proposal.llm_connection is None:
        raise DomainError("The LLM connection was deleted. Start the proposal with another one.")
    options = msgspec.convert(proposal.options, ProposalOptions)
    detectors = detectors_of(proposal.project)
    runs = _successful(tasks) if options.with_trajectories else {}
    lines = [
        {
            "task": task.pk,
            "instruction": mask_text(task.instruction, detectors),
            "trajectories": [str(key) for key in runs.get(task.pk, ())],
        }
        for task in Task.objects.filter(pk__in=tasks).order_by("pk")
    ]
    with tempfile.TemporaryDirectory(prefix="subgoals-") as scratch:
        folder = Path(scratch)
        write_json_lines(folder / "tasks.jsonl", lines)
        read = stream_trajectories((key for keys in runs.values() for key in keys), check=heartbeat.check)
        schema.write_trajectories(
            folder / "trajectories.jsonl.zst", (mask_trajectory(each, detectors)[0] for each in read)
        )
        with open_llm_access(proposal.llm_connection, folder, SpendingPurpose.SUBGOALS) as access:
            _run_child(proposal, folder, access, heartbeat)
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    proposal.result = _with_usage(proposal.result, result)


def _successful(tasks: list[int]) -> dict[int, list[int]]:
    """By task, the newest trajectories that succeeded."""
    found: dict[int, list[int]] = {}
    rows = Trajectory.objects.filter(task__in=tasks, success=True).order_by("-pk")
    for task, key in rows.values_list("task", "pk").iterator():
        own = found.setdefault(task, [])
        if len(own) < MOST_RUNS:
            own.append(key)
    return found


def _run_child(proposal: SubgoalProposal, folder: Path, access: LLMAccess, heartbeat: JobHeartbeat) -> None:
    (folder / "config.json").write_text(json.dumps({"server": access.server}), encoding="utf-8")
    (folder / "found.jsonl").touch()
    found = JsonLinesTail(folder / "found.jsonl")

    def store() -> None:
        if lines := found.read_new():
            store_proposed(proposal, lines)

    def check() -> None:
        heartbeat.check()
        access.store_new_completions()
        store()

    try:
        core_subprocess.run_to_end(
            CHILD, [str(folder)], folder=folder, what="The proposal", check=check, given=access.environment
        )
    finally:
        store()


def _with_usage(result: dict[str, Any], child_result: dict[str, Any]) -> dict[str, Any]:
    usage = Counter(result.get("usage", {}))
    usage.update(child_result["usage"])
    return result | {"usage": dict(usage), "prompts": child_result["prompts"]}
