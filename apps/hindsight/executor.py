"""Has hindsight tasks proposed: child processes of the core, each on a folder with some of the trajectories."""

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from apps.core.errors import DomainError
from apps.core.jobs.job_queue import Cancelled, JobHeartbeat, JobState, finish, keep_heartbeat
from apps.core.processes import core_subprocess
from apps.hindsight.models import HindsightProposal
from apps.hindsight.services import store_proposed_tasks
from apps.llm.child_access import JsonLinesTail, LLMAccess, open_llm_access
from apps.llm.models import SpendingPurpose
from apps.trajectories.masking import mask_trajectory
from apps.trajectories.selectors import stream_trajectories
from apps.trajectories.services import detectors_of
from workers import schema

CHILD = "workers.hindsight"
BATCH = 100  # trajectories of a child, which holds them in memory


def execute(proposal: HindsightProposal) -> None:
    """Raises ClaimLost, Interrupted."""
    with keep_heartbeat(proposal) as heartbeat:
        try:
            for start in range(0, len(proposal.trajectories), BATCH):
                heartbeat.progress = {
                    "done": start,
                    "total": len(proposal.trajectories),
                    "note": "Asking what was done",
                }
                heartbeat.check()
                _propose(proposal, proposal.trajectories[start : start + BATCH], heartbeat)
            finish(proposal, JobState.SUCCEEDED, progress={}, result=proposal.result)
        except DomainError as error:
            finish(proposal, JobState.FAILED, error=error.message, result=proposal.result)
        except Cancelled:
            finish(proposal, JobState.CANCELLED, result=proposal.result)


def _propose(proposal: HindsightProposal, keys: list[int], heartbeat: JobHeartbeat) -> None:
    if proposal.llm_connection is None:
        raise DomainError("The LLM connection was deleted. Start the proposal with another one.")
    detectors = detectors_of(proposal.project)
    with tempfile.TemporaryDirectory(prefix="hindsight-") as scratch:
        folder = Path(scratch)
        read = stream_trajectories(keys, check=heartbeat.check)
        masked = (mask_trajectory(each, detectors)[0] for each in read)
        schema.write_trajectories(folder / "trajectories.jsonl.zst", _without_copies(proposal, masked))
        with open_llm_access(proposal.llm_connection, folder, SpendingPurpose.HINDSIGHT) as access:
            _run_child(proposal, folder, access, heartbeat)
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    proposal.result = _with_usage(proposal.result, result)


def _without_copies(
    proposal: HindsightProposal, read: Iterable[schema.Trajectory]
) -> Iterator[schema.Trajectory]:
    """Each content once; why the others get no text is stored with those that have none."""
    seen: set[str] = set()
    copies: dict[str, str] = {}
    for run in read:
        if run.content_hash in seen:
            copies[str(run.id)] = "The trajectory has the same content as another one of the proposal."
        else:
            seen.add(run.content_hash)
            yield run
    proposal.result["problems"] = proposal.result.get("problems", {}) | copies


def _run_child(proposal: HindsightProposal, folder: Path, access: LLMAccess, heartbeat: JobHeartbeat) -> None:
    (folder / "config.json").write_text(json.dumps({"server": access.server}), encoding="utf-8")
    (folder / "found.jsonl").touch()
    found = JsonLinesTail(folder / "found.jsonl")

    def store() -> None:
        if lines := found.read_new():
            store_proposed_tasks(proposal, lines)

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
