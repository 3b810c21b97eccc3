"""Has a language model list the rules of a document: a child process of the core on a folder with the text."""

import json
import tempfile
from pathlib import Path

from apps.core.errors import DomainError
from apps.core.jobs.job_queue import Cancelled, JobHeartbeat, JobState, finish, keep_heartbeat
from apps.core.processes import core_subprocess
from apps.llm.child_access import JsonLinesTail, open_llm_access
from apps.llm.models import SpendingPurpose
from apps.policy_documents.models import PolicySplit
from apps.policy_documents.services import store_found

CHILD = "workers.policy_rules"


def execute(split: PolicySplit) -> None:
    """Raises ClaimLost, Interrupted."""
    with keep_heartbeat(split) as heartbeat:
        try:
            heartbeat.progress = {"done": 0, "total": None, "note": "Asking for rules"}
            heartbeat.check()
            _list_rules(split, heartbeat)
            finish(split, JobState.SUCCEEDED, progress={}, result=split.result)
        except DomainError as error:
            finish(split, JobState.FAILED, error=error.message, result=split.result)
        except Cancelled:
            finish(split, JobState.CANCELLED, result=split.result)


def _list_rules(split: PolicySplit, heartbeat: JobHeartbeat) -> None:
    if split.llm_connection is None:
        raise DomainError("The LLM connection was deleted. Add the version again with another one.")
    with tempfile.TemporaryDirectory(prefix="policy-rules-") as scratch:
        folder = Path(scratch)
        (folder / "document.txt").write_text(split.version.text, encoding="utf-8")
        (folder / "found.jsonl").touch()
        with open_llm_access(split.llm_connection, folder, SpendingPurpose.POLICIES) as access:
            (folder / "config.json").write_text(json.dumps({"server": access.server}), encoding="utf-8")

            def check() -> None:
                heartbeat.check()
                access.store_new_completions()

            core_subprocess.run_to_end(
                CHILD,
                [str(folder)],
                folder=folder,
                what="The list of rules",
                check=check,
                given=access.environment,
            )
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        split.result = {**split.result, "usage": result["usage"], "prompts": result["prompts"]}
        store_found(split, JsonLinesTail(folder / "found.jsonl").read_new())
