"""Executes a judge run: child processes of the core, each on a folder of some of what waits."""

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from django.utils import timezone

from apps.core.errors import DomainError
from apps.core.jobs.job_queue import Cancelled, JobHeartbeat, JobState, finish, keep_heartbeat
from apps.core.processes import core_subprocess
from apps.judges.models import JudgeResult, JudgeRun
from apps.judges.services.judge_runs import store_results, update_trajectory_facts, write_annotations
from apps.llm.child_access import asking
from apps.llm.models import SpendingPurpose
from apps.rubrics.models import Criterion
from apps.trajectories.selectors import stream_trajectories
from workers import schema

CHILD = "workers.judge"
AT_ONCE = 1000  # units of a child: what it holds in memory
OVERALL = "Overall"


def execute(judge_run: JudgeRun) -> None:
    """Ask for what waits, keep what comes, and hand it in where that is wanted. Raises ClaimLost, Interrupted."""
    with keep_heartbeat(judge_run) as heartbeat:
        try:
            waiting = judge_run.results.filter(state=JudgeResult.State.WAITING).order_by("pk")
            while units := list(islice(waiting.iterator(chunk_size=AT_ONCE), AT_ONCE)):
                _ask(judge_run, units, heartbeat)
            if judge_run.saves_annotations:
                heartbeat.progress = {"done": 0, "total": None, "note": "Handing it in"}
                write_annotations(judge_run, heartbeat.check)
                judge_run.annotations_saved_at = timezone.now()
            update_trajectory_facts(judge_run)
            finish(
                judge_run,
                JobState.SUCCEEDED,
                progress={},
                result=judge_run.result,
                annotations_saved_at=judge_run.annotations_saved_at,
            )
        except DomainError as error:
            finish(judge_run, JobState.FAILED, error=error.message, result=judge_run.result)
        except Cancelled:
            finish(judge_run, JobState.CANCELLED, result=judge_run.result)


def _ask(judge_run: JudgeRun, units: list[JudgeResult], heartbeat: JobHeartbeat) -> None:
    """Have a child ask about these; none of them waits afterwards."""
    judge = judge_run.judge
    if judge.llm_connection is None:
        raise DomainError(f"The language model of {judge.name} was removed, so there is nobody to ask.")
    with tempfile.TemporaryDirectory(prefix="judge-run-") as scratch:
        folder = Path(scratch)
        runs = list(dict.fromkeys(run for unit in units for run in _runs(unit)))
        schema.write_trajectories(
            folder / "trajectories.jsonl.zst", stream_trajectories(runs, check=heartbeat.check)
        )
        _write(
            folder / "units.jsonl", ({"unit": unit.pk, "runs": list(map(str, _runs(unit)))} for unit in units)
        )
        (folder / "judged.jsonl").touch()
        read = 0

        def keep() -> None:
            nonlocal read
            with (folder / "judged.jsonl").open("rb") as new:
                new.seek(read)
                whole = new.read().rpartition(b"\n")[0]
            if whole:
                store_results(judge_run, map(json.loads, whole.splitlines()))
                read += len(whole) + 1
            counts = Counter(judge_run.results.values_list("state", flat=True))
            heartbeat.progress = {
                "done": counts.total() - counts[JudgeResult.State.WAITING],
                "total": counts.total(),
                "note": f"{judge.llm_connection} is asked",
            }

        with asking(judge.llm_connection, folder, SpendingPurpose.JUDGE_RUNS) as one:

            def check() -> None:
                heartbeat.check()
                one.keep()
                keep()

            (folder / "config.json").write_text(json.dumps(_config(judge_run, one.server)))
            try:
                core_subprocess.run_to_end(
                    CHILD, [str(folder)], folder=folder, what="The judge run", check=check, given=one.given
                )
            finally:
                keep()
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    judge_run.result = _with(judge_run.result, result)


def _config(judge_run: JudgeRun, server: Mapping[str, Any]) -> dict[str, Any]:
    judge = judge_run.judge
    return {
        "server": server,
        "mode": judge.mode,
        "criteria": [criterion_of(one, judge.mode) for one in judge.criteria],
        "version": judge_run.prompt,
        "samples": judge.samples,
        "guidelines": judge.guidelines,
    }


def criterion_of(criterion: Criterion | None, mode: str) -> dict[str, Any]:
    if criterion is None:
        return {"name": OVERALL, "definition": "Which run does the task better, all in all."}
    told = {
        "name": criterion.name,
        "definition": criterion.definition,
        "good_example": criterion.good_example,
        "bad_example": criterion.bad_example,
    }
    if mode == "compare":
        return told
    return told | {"low": criterion.scale_low, "high": criterion.scale_high}


def _runs(unit: JudgeResult) -> list[int]:
    return [unit.trajectory_id, *([] if unit.other_trajectory_id is None else [unit.other_trajectory_id])]


def _with(before: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    """What this judge run asked until now, all its children together."""
    usage = Counter(before.get("usage", {}))
    usage.update(result["usage"])
    return {"usage": dict(usage), "prompts": sorted({*before.get("prompts", ()), *result["prompts"]})}


def _write(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines)
