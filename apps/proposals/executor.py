"""Has something proposed: child processes of the core, each on a folder with what is known of some of the rows."""

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from apps.core.errors import DomainError
from apps.core.jobs.job_queue import Cancelled, JobHeartbeat, JobState, finish, keep_heartbeat
from apps.core.processes import core_subprocess
from apps.llm.child_access import JsonLinesTail, LLMAccess, open_llm_access
from apps.proposals.kinds import JobT, ProposalKind, RowT
from apps.proposals.services import store

BATCH = 100  # rows of a child, which holds their trajectories in memory


def execute(kind: ProposalKind[JobT, RowT], proposal: JobT) -> None:
    """Raises ClaimLost, Interrupted."""
    keys = proposal.keys
    with keep_heartbeat(proposal) as heartbeat:
        try:
            for start in range(0, len(keys), BATCH):
                heartbeat.progress = {"done": start, "total": len(keys), "note": kind.asking}
                heartbeat.check()
                _propose(kind, proposal, keys[start : start + BATCH], heartbeat)
            finish(proposal, JobState.SUCCEEDED, progress={}, result=proposal.result)
        except DomainError as error:
            finish(proposal, JobState.FAILED, error=error.message, result=proposal.result)
        except Cancelled:
            finish(proposal, JobState.CANCELLED, result=proposal.result)


def _propose(
    kind: ProposalKind[JobT, RowT], proposal: JobT, keys: list[int], heartbeat: JobHeartbeat
) -> None:
    if proposal.llm_connection is None:
        raise DomainError("The LLM connection was deleted. Start the proposal with another one.")
    with tempfile.TemporaryDirectory(prefix=f"{kind.verb}-") as scratch:
        folder = Path(scratch)
        kind.write_inputs(proposal, keys, folder, heartbeat.check)
        with open_llm_access(proposal.llm_connection, folder, kind.purpose) as access:
            _run_child(kind, proposal, folder, access, heartbeat)
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    proposal.result = _with_usage(proposal.result, result)


def _run_child(
    kind: ProposalKind[JobT, RowT],
    proposal: JobT,
    folder: Path,
    access: LLMAccess,
    heartbeat: JobHeartbeat,
) -> None:
    (folder / "config.json").write_text(json.dumps({"server": access.server}), encoding="utf-8")
    (folder / "found.jsonl").touch()
    found = JsonLinesTail(folder / "found.jsonl")

    def store_new() -> None:
        if lines := found.read_new():
            store(kind, proposal, lines)

    def check() -> None:
        heartbeat.check()
        access.store_new_completions()
        store_new()

    try:
        core_subprocess.run_to_end(
            kind.child,
            [str(folder)],
            folder=folder,
            what="The proposal",
            check=check,
            given=access.environment,
        )
    finally:
        store_new()


def _with_usage(result: dict[str, Any], child_result: dict[str, Any]) -> dict[str, Any]:
    usage = Counter(result.get("usage", {}))
    usage.update(child_result["usage"])
    return result | {"usage": dict(usage), "prompts": child_result["prompts"]}
